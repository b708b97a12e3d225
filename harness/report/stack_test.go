package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/goroutines"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// waiting is a debug=2 dump of one goroutine that waits deep below the function that the signature asks for.
func waiting(minutes int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "goroutine 7 [select, %d minutes]:\n", minutes)
	for i := range 20 {
		fmt.Fprintf(&b, "net.(*conn).call%d(0x1)\n\t/src/net.go:%d +0x1\n", i, i+1)
	}
	b.WriteString("k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).Relist(0x1)\n\t/src/generic.go:395 +0x1\nmain.main()\n\t/src/main.go:1 +0x1\n")
	return b.String()
}

// Whoever looks at the decisive stack sees the dump that decided, for how long the goroutine waits, and where in it is
// what the check asks for, however deep that lies.
func TestTheDecisiveStackIsThatOfTheDumpThatDecided(t *testing.T) {
	header := scenario.CheckHeader{Name: "is blocked", Kind: "goroutines", Phase: check.Recovery}
	blocked := plan.Check{CheckHeader: header, Spec: &goroutines.Goroutines{Func: "pleg.(*GenericPLEG).Relist", State: "blocked", Depth: "any", Count: 1, Dumps: 1}}
	for name, signature := range map[string]plan.Check{
		"a check":           blocked,
		"of a check's ways": {CheckHeader: scenario.CheckHeader{Name: "ill", Phase: check.Recovery}, AnyOf: []plan.Check{blocked}},
	} {
		t.Run(name, func(t *testing.T) { decisiveStack(t, signature) })
	}
}

func decisiveStack(t *testing.T, signature plan.Check) {
	tr := newTrial()
	tr.plan.Signature = []plan.Check{signature}
	tr.vulnerable.after, tr.fixed.after = "", "goroutine 9 [select]:\nmain.main()\n\t/src/main.go:1 +0x1\n"
	tr.vulnerable.before, tr.fixed.before = tr.fixed.after, tr.fixed.after
	tr.vulnerable.more = func(w *bundle.Writer) {
		record(w, "vulnerable", bundle.Goroutines1, 65, "goroutine profile: total 1\n1 @ 0x1\n#\t0x1\tk8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).Relist+0x1\t/src/generic.go:395\n")
		record(w, "vulnerable", bundle.Goroutines2, 65, waiting(3))
		record(w, "vulnerable", bundle.Goroutines2, 81, waiting(9)) // after the trial: no check asks for it
	}
	tr.emit = faultEvents("vulnerable", 42, 58)
	v, err := judge.Run(tr.write(t))
	must(t, err)
	all := reports(t, v)
	inOrder(t, all[report.PageFile], ">Decisive stacks</h3>", "of 2026-03-04 05:07:12 UTC</a> has it, on which <b>is blocked</b> rests",
		"<code>[select]</code>, age: waiting for 3 min", "net.(*conn).call0\n", "lines left out", "<mark>k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).Relist</mark>\n    generic.go:395")
	inOrder(t, all["the terminal"], "    goroutine 7 [select, 3 minutes]:\n", "lines left out\n",
		"  > k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).Relist(...)\n    \t/src/generic.go:395\n")
}
