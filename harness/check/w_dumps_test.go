package check_test

import (
	"os"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// dumps records goroutine dumps: testdata's file of a name, at a second each.
func dumps(arm string, list ...any) func(*trial) {
	return func(tr *trial) {
		tr.phases()
		for i := 0; i < len(list); i += 2 {
			tr.dump(arm, list[i].(int), list[i+1].(string))
		}
	}
}

// dump records one dump. "failed" is a capture that failed, a name with a "~" in front is cut in its middle,
// and "=" after it gives the goroutine that sends another state.
func (tr *trial) dump(arm string, second int, name string) {
	tr.t.Helper()
	if name == "failed" {
		tr.fail(bundle.Goroutines2, arm, float64(second), "connection refused")
		return
	}
	bare, cut := strings.CutPrefix(name, "~")
	bare, as, other := strings.Cut(bare, "=")
	text, err := os.ReadFile("testdata/" + bare + ".debug2")
	tr.must(err)
	if other {
		text = []byte(strings.Replace(string(text), "[chan send", "["+as, 1))
	}
	if cut {
		text = text[:strings.Index(string(text), "/src/k8s.io/kubernetes/pkg/kubelet/pleg/generic.go")]
	}
	tr.dumped(arm, second, string(text))
}

// edited records a dump with a text in place of another.
func (tr *trial) edited(second int, name, what, as string) {
	tr.t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".debug2")
	tr.must(err)
	tr.dumped(arm, second, strings.Replace(string(text), what, as, 1))
}

func (tr *trial) dumped(arm string, second int, text string) {
	tr.t.Helper()
	_, err := tr.w.Write(bundle.Meta{Kind: bundle.Goroutines2, Arm: arm, Time: tr.at(float64(second))}, "txt", strings.NewReader(text))
	tr.must(err)
}
