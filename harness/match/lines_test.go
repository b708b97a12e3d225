package match_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// signed is the scheduler's scenario with one sign that has one check, and rules the incident out where it isn't met.
func signed(t *testing.T, kind, spec string) *scenario.Scenario {
	t.Helper()
	text, err := os.ReadFile("../../scenarios/scheduler-nil-pointer/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	above, _, _ := strings.Cut(string(text), "  match:")
	s, err := scenario.Parse("../../scenarios/scheduler-nil-pointer/s.yaml", fmt.Appendf(nil, "%s  match:\n    signs:\n      - name: own\n        is: decisive\n        rulesOut: true\n"+
		"        ground: x\n        settle: y\n        checks:\n          - {name: c, kind: %s, spec: %s}\n", above, kind, spec))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A check gets the lines that it wants, and all of them if it doesn't say which. Where these are too many it has no
// answer.
func TestLinesThatAreKept(t *testing.T) {
	const ours = `E0301 10:00:02.000000       1 foo.go:12] "a line of our own"` + "\n"
	exists := `{expression: "messages('kube-scheduler').exists(m, m.message.contains('line of our own'))"}`
	none := `{expression: "messages('kube-scheduler').filter(m, m.message.contains('line of our own')).size() == 0"}`
	count := "{component: kube-scheduler, pattern: line of our own, atLeast: 1}"
	recovered := "{component: kube-scheduler, message: nil pointer, frames: ['nodevolumelimits.(*CSILimits).checkAttachableInlineVolume']}"
	stack := `E0301 10:00:03.000000       1 runtime.go:79] Observed a panic: "invalid memory address or nil pointer dereference"` + "\ngoroutine 233 [running]:\n" +
		"panic({0x1, 0x1})\n\t/usr/local/go/src/runtime/panic.go:884 +0x1\nk8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits." +
		"(*CSILimits).checkAttachableInlineVolume(0x1)\n\t/csi.go:235 +0x1\n\n"
	usual := strings.Repeat("I0301 10:00:00.000000       1 serving.go:386] \"a line as any other\"\n", 5)
	for _, c := range []struct{ name, kind, spec, log, want, why string }{
		{"an expression that finds one", "cel", exists, usual + ours + usual, "met", "own: "},
		{"an expression that finds none", "cel", exists, usual, "not met", "own: "},
		{"an expression that wants none", "cel", none, usual + ours, "not met", "own: "},
		{"an expression that has none, as it wants", "cel", none, usual, "met", "own: "},
		{"an expression over a log that is too long", "cel", none, strings.Repeat(usual, 4001) + ours, "unknown", "6 lines of its logs weren't kept, and this asks for all of them"},
		{"an expression over a log that is too large", "cel", exists, strings.Repeat(strings.Repeat("x", 1<<19)+"\n", 40), "unknown", "8 lines of its logs weren't kept"},
		{"a count of a long log", "logCount", count, strings.Repeat(usual, 4001) + ours, "met", "1 such lines among 20006"},
		{"a panic that was recovered from", "recovered", recovered, usual + stack + usual, "met", "1 of 1 panics"},
		{"none", "recovered", recovered, usual, "not met", "0 of 0 panics"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := signed(t, c.kind, c.spec)
			dir := files(t, map[string]string{"kube-scheduler.log": c.log})
			r, err := match.Run(t.Context(), append([]*scenario.Scenario{s}, others(t, s)...), nil, []string{dir}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if i := of(t, r, s.Metadata.Name); i.Word() != c.want || !strings.Contains(i.Why, c.why) {
				t.Errorf("it is %s: %s; want %s: %s", i.Word(), i.Why, c.want, c.why)
			}
		})
	}
}

// others are the scenarios beside one, which want lines of their own.
func others(t *testing.T, s *scenario.Scenario) (out []*scenario.Scenario) {
	for _, o := range known(t) {
		if o.Metadata.Name != s.Metadata.Name {
			out = append(out, o)
		}
	}
	return out
}

// Every kind that reads logs is answered or is unknown: none is asked about lines that nobody kept.
func TestEveryKindThatReadsLogs(t *testing.T) {
	n := 0
	for _, e := range kinds.Of(kinds.Check) {
		for _, spec := range []string{e.Meets, e.Differs} {
			if spec == "" {
				continue
			}
			k, err := kinds.Decode[check.Check](kinds.Check, e.Name, []byte(spec))
			if err != nil {
				t.Fatal(err)
			}
			reads := fmt.Sprint(k.Reads())
			if _, picks := k.(check.LinePicker); picks || !strings.Contains(reads, "logs") && !strings.Contains(reads, "journal") {
				continue
			}
			n++
			dir := files(t, map[string]string{"kube-scheduler.log": strings.Repeat(overdue, 20_001)})
			r, err := match.Run(t.Context(), []*scenario.Scenario{signed(t, e.Name, spec)}, nil, []string{dir}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if s := r.Incidents[0].Subjects[0].Signs[0]; s.Met != check.Unknown || !strings.Contains(s.Seen, "1 lines of its logs weren't kept") {
				t.Errorf("%s %s is %s: %s", e.Name, spec, s.Met, s.Seen)
			}
		}
	}
	if n < 3 {
		t.Errorf("%d specs were asked", n)
	}
}
