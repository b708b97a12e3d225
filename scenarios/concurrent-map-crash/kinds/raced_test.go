package kinds_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// race is what the detector prints as it finds that one goroutine encodes an audit event while another adds to it.
const race = `==================
WARNING: DATA RACE
Write at 0x00c00009cb10 by goroutine 9:
  runtime.mapassign_faststr()
      internal/runtime/maps/runtime_faststr.go:263 +0x0
W1122 16:40:00.000000       1 dispatcher.go:205] Failed calling webhook, failing open
  k8s.io/apiserver/pkg/audit.AddAuditAnnotationsMap()
      k8s.io/apiserver/pkg/audit/context.go:150 +0x4a

Previous read at 0x00c00009cb10 by goroutine 11:
  k8s.io/json.mapEncoder.encode()
      k8s.io/json/encode.go:1 +0xc4

Goroutine 9 (running) created at:
  k8s.io/x.main()
      k8s.io/x/main.go:8 +0x9e

Goroutine 11 (finished) created at:
  k8s.io/x.main()
      k8s.io/x/main.go:9 +0x9e
==================`

func TestRaced(t *testing.T) {
	logs := []bundle.Kind{bundle.Logs}
	of := func(text string) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			w := tr.W.View().World()
			w.Arms[0].Flags = []string{"-trimpath", "-race"}
			tr.Must(tr.W.SetWorld(w))
			tr.Crashes(checktest.Crash{Second: 60, Code: 2, Log: text})
		}
	}
	const encodes = `{"component":"kube-apiserver","sides":[["json.mapEncoder.encode"]]}`
	noneEncodes := strings.Replace(encodes, "]]", `]],"none":true`, 1)
	without, _, _ := strings.Cut(race, "\nPrevious")
	qs := []checktest.Question{
		{Name: "both sides", Fill: of(race), Met: check.True, Evidence: logs, Seen: "1 of 1 races",
			Detail: "Write:\n  runtime.mapassign_faststr()\n      internal/runtime/maps/runtime_faststr.go:263\n  k8s.io/apiserver/pkg/audit.AddAuditAnnotationsMap()"},
		{Name: "the sides the other way round", Spec: `{"component":"kube-apiserver","sides":[["json.mapEncoder.encode"],["audit.AddAuditAnnotationsMap"]]}`, Fill: of(race),
			Met: check.True, Evidence: logs, Seen: "1 of 1 races"},
		{Name: "one side twice", Spec: `{"component":"kube-apiserver","sides":[["json.mapEncoder.encode"],["json.mapEncoder.encode"]]}`, Fill: of(race),
			Met: check.False, Evidence: logs, Seen: "0 of 1 races", Differs: []string{"runtime.mapassign_faststr against k8s.io/json.mapEncoder.encode"}},
		{Name: "who started the goroutines is no side", Spec: `{"component":"kube-apiserver","sides":[["json.mapEncoder.encode"],["x.main"]]}`, Fill: of(race),
			Met: check.False, Evidence: logs, Seen: "0 of 1 races", Differs: []string{"runtime.mapassign_faststr against"}},
		{Name: "cut in the middle", Fill: of(without), Met: check.Unknown, Evidence: logs, Seen: "another report has not both stacks"},
		{Name: "the detector forgot a stack", Fill: of(strings.Replace(race, "  k8s.io/json.mapEncoder.encode()\n      k8s.io/json/encode.go:1 +0xc4", "  [failed to restore the stack]", 1)),
			Met: check.Unknown, Evidence: logs, Seen: "another report has not both stacks"},
		{Name: "none", Fill: of("I1122 quiet"), Met: check.False, Evidence: logs, Seen: "0 of 0 races"},
		{Name: "built without the detector", Fill: func(tr *checktest.Trial) { tr.Crashes(checktest.Crash{Second: 60, Code: 2, Log: race}) }, Met: check.Unknown, Seen: "not built with the race detector"},
		{Name: "no log", Fill: func(tr *checktest.Trial) {
			w := tr.W.View().World()
			w.Arms[0].Flags = []string{"-race"}
			tr.Must(tr.W.SetWorld(w))
			tr.Phases()
		}, Met: check.Unknown, Seen: "no log of kube-apiserver was recorded"},
		{Name: "another function against the one that encodes", Spec: encodes, Fill: of(strings.Replace(race, "audit.AddAuditAnnotationsMap()", "audit.(*AuditContext).annotateAll()", 1)), Met: check.True,
			Evidence: logs, Seen: "1 of 1 races", Wanted: "a race in kube-apiserver with json.mapEncoder.encode on one side", Detail: "audit.(*AuditContext).annotateAll()"},
		{Name: "a race of something else", Spec: `{"component":"kube-apiserver","sides":[["x.main"]]}`, Fill: of(race), Met: check.False, Evidence: logs, Seen: "0 of 1 races",
			Differs: []string{"runtime.mapassign_faststr against k8s.io/json.mapEncoder.encode"}},
		{Name: "there must be none", Spec: noneEncodes, Fill: of(race), Met: check.False, Evidence: logs, Seen: "1 of 1 races", Detail: "Write:",
			Wanted: "no race in kube-apiserver with json.mapEncoder.encode on one side"},
		{Name: "there is none", Spec: noneEncodes, Fill: of("I1122 quiet"), Met: check.True, Evidence: logs, Seen: "0 of 0 races"},
		{Name: "there may be one", Spec: noneEncodes, Fill: of(without), Met: check.Unknown, Evidence: logs, Seen: "another report has not both stacks"},
		{Name: "the same before each line", Fill: of("stderr: " + strings.ReplaceAll(race, "\n", "\nstderr: ")), Met: check.True, Evidence: logs, Seen: "1 of 1 races", Detail: "Write:"},
		{Name: "a time before each line", Fill: of("10:00:01 " + strings.Replace(strings.ReplaceAll(race, "\n", "\n10:00:01 "), "\n10:00:01 W", "\n10:00:00 W", 1)), Met: check.Unknown,
			Evidence: logs, Seen: "another report has not both stacks"},
		{Name: "in a line of JSON", Fill: of(`{"msg":"stderr","text":"` + strings.ReplaceAll(race, "\n", `\n`) + `"}`), Met: check.True, Evidence: logs, Seen: "1 of 1 races", Detail: "Write:"},
		{Name: "in a line of JSON that was cut", Fill: of(`{"msg":"stderr","text":"` + strings.ReplaceAll(race, "\n", `\n`)), Met: check.Unknown, Evidence: logs, Seen: "another report has not both stacks"},
		{Name: "no list", Spec: `{"component":"kube-apiserver","sides":[]}`, Fill: of(race), Met: check.Unknown, Code: check.BadCheck, Seen: "sides has 0 lists (want 1 or 2)"},
	}
	checktest.Run(t, qs, func(q *checktest.Question) {
		q.Kind, q.Scope = "raced", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		if q.Spec == "" {
			q.Spec = `{"component":"kube-apiserver","sides":[["audit.AddAuditAnnotationsMap"],["json.mapEncoder.encode"]]}`
		}
	})
}

// That there is no race is also true of a log without any line.
func TestRacedVacuous(t *testing.T) {
	for spec, want := range map[string]bool{
		`{"component":"kube-apiserver","sides":[["f"]]}`: false, `{"component":"kube-apiserver","sides":[["f"]],"none":true}`: true,
	} {
		c, err := kinds.Decode[check.Check](kinds.Check, "raced", []byte(spec))
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := c.(check.Vacuous); !ok || v.Vacuous() != want {
			t.Errorf("%s is vacuous: %v, want %v", spec, !want, want)
		}
	}
}
