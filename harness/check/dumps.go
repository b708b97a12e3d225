package check

import (
	"errors"
	"fmt"
	"io"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// AsDump is the name under which a view remembers an artifact as a *goroutine.Dump.
const AsDump = "dump"

// dump reads a dump, which may be cut short.
func dump(v bundle.View, a bundle.Artifact) (*goroutine.Dump, error) {
	if a.Missing {
		return nil, errors.New(captureError(a))
	}
	return remember(v, a, AsDump,
		func(_ *goroutine.Dump, r io.Reader) (*goroutine.Dump, error) { return goroutine.Read(r) })
}

// completeDump reads a dump, and returns an error if the dump is cut short.
func completeDump(v bundle.View, a bundle.Artifact) (*goroutine.Dump, error) {
	d, err := dump(v, a)
	if err == nil && d.Truncated {
		err = cutShort(a)
	}
	return d, err
}

func cutShort(a bundle.Artifact) error { return fmt.Errorf("%s is cut short", a.Path) }
