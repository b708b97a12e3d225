package checktest

import (
	"embed"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

//go:embed testdata
var testdata embed.FS

// Testdata returns the file of a name: goroutine dumps and CPU profiles of real processes.
func (tr *Trial) Testdata(name string) []byte {
	tr.T.Helper()
	b, err := testdata.ReadFile("testdata/" + name)
	tr.Must(err)
	return b
}

// Dumps records goroutine dumps: testdata's file of a name, at a second each.
func Dumps(arm string, list ...any) func(*Trial) {
	return func(tr *Trial) {
		tr.Phases()
		for i := 0; i < len(list); i += 2 {
			tr.Dump(arm, list[i].(int), list[i+1].(string))
		}
	}
}

// Dump records one dump. "failed" is a capture that failed, a name with a "~" in front is cut in its middle,
// and "=" after it gives the goroutine that sends another state.
func (tr *Trial) Dump(arm string, second int, name string) {
	tr.T.Helper()
	if name == "failed" {
		tr.Fail(bundle.Goroutines2, arm, float64(second), "connection refused")
		return
	}
	bare, cut := strings.CutPrefix(name, "~")
	bare, as, other := strings.Cut(bare, "=")
	text := tr.Testdata(bare + ".debug2")
	if other {
		text = []byte(strings.Replace(string(text), "[chan send", "["+as, 1))
	}
	if cut {
		text = text[:strings.Index(string(text), "/src/k8s.io/kubernetes/pkg/kubelet/pleg/generic.go")]
	}
	tr.Dumped(arm, second, string(text))
}

// Edited records a dump with a text in place of another.
func (tr *Trial) Edited(second int, name, what, as string) {
	tr.T.Helper()
	text := tr.Testdata(name + ".debug2")
	tr.Dumped(Arm, second, strings.Replace(string(text), what, as, 1))
}

// Dumped records the text of a dump.
func (tr *Trial) Dumped(arm string, second int, text string) {
	tr.T.Helper()
	_, err := tr.W.Write(
		bundle.Meta{Kind: bundle.Goroutines2, Arm: arm, Time: tr.At(float64(second))},
		"txt",
		strings.NewReader(text),
	)
	tr.Must(err)
}
