package question

import (
	"io"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// AsDump is the name under which a view remembers an artifact as a *goroutine.Dump.
const AsDump = "dump"

// ReadDump reads a dump, which may be cut short.
func ReadDump(v bundle.View, a bundle.Artifact) (*goroutine.Dump, error) {
	if a.Missing {
		return nil, CaptureError(a)
	}
	return Remember(
		v,
		a,
		AsDump,
		func(_ *goroutine.Dump, r io.Reader) (*goroutine.Dump, error) { return goroutine.Read(r) },
	)
}

// ReadCompleteDump reads a dump, and returns an error if the dump is cut short.
func ReadCompleteDump(v bundle.View, a bundle.Artifact) (*goroutine.Dump, error) {
	d, err := ReadDump(v, a)
	if err == nil && d.Truncated {
		err = CutShort(a)
	}
	return d, err
}

// CutShort returns the error for a dump that ends in its middle.
func CutShort(a bundle.Artifact) error {
	return check.Doubt(check.Unreadable, "%s is cut short", a.Path)
}
