package check_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
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
	of := func(text string) func(*trial) {
		return func(tr *trial) {
			w := tr.w.View().World()
			w.Arms[0].Flags = []string{"-trimpath", "-race"}
			tr.must(tr.w.SetWorld(w))
			tr.crashes(crash{second: 60, code: 2, log: text})
		}
	}
	const encodes = `{"component":"kube-apiserver","sides":[["json.mapEncoder.encode"]]}`
	noneEncodes := strings.Replace(encodes, "]]", `]],"none":true`, 1)
	without, _, _ := strings.Cut(race, "\nPrevious")
	qs := []question{
		{name: "both sides", fill: of(race), met: check.True, evidence: logs, seen: "1 of 1 races",
			detail: "Write:\n  runtime.mapassign_faststr()\n      internal/runtime/maps/runtime_faststr.go:263\n  k8s.io/apiserver/pkg/audit.AddAuditAnnotationsMap()"},
		{name: "the sides the other way round", spec: `{"component":"kube-apiserver","sides":[["json.mapEncoder.encode"],["audit.AddAuditAnnotationsMap"]]}`, fill: of(race),
			met: check.True, evidence: logs, seen: "1 of 1 races"},
		{name: "one side twice", spec: `{"component":"kube-apiserver","sides":[["json.mapEncoder.encode"],["json.mapEncoder.encode"]]}`, fill: of(race),
			met: check.False, evidence: logs, seen: "0 of 1 races", differs: []string{"runtime.mapassign_faststr against k8s.io/json.mapEncoder.encode"}},
		{name: "who started the goroutines is no side", spec: `{"component":"kube-apiserver","sides":[["json.mapEncoder.encode"],["x.main"]]}`, fill: of(race),
			met: check.False, evidence: logs, seen: "0 of 1 races", differs: []string{"runtime.mapassign_faststr against"}},
		{name: "cut in the middle", fill: of(without), met: check.Unknown, evidence: logs, seen: "another report has not both stacks"},
		{name: "the detector forgot a stack", fill: of(strings.Replace(race, "  k8s.io/json.mapEncoder.encode()\n      k8s.io/json/encode.go:1 +0xc4", "  [failed to restore the stack]", 1)),
			met: check.Unknown, evidence: logs, seen: "another report has not both stacks"},
		{name: "none", fill: of("I1122 quiet"), met: check.False, evidence: logs, seen: "0 of 0 races"},
		{name: "built without the detector", fill: func(tr *trial) { tr.crashes(crash{second: 60, code: 2, log: race}) }, met: check.Unknown, seen: "not built with the race detector"},
		{name: "no log", fill: func(tr *trial) {
			w := tr.w.View().World()
			w.Arms[0].Flags = []string{"-race"}
			tr.must(tr.w.SetWorld(w))
			tr.phases()
		}, met: check.Unknown, seen: "no log of kube-apiserver was recorded"},
		{name: "another function against the one that encodes", spec: encodes, fill: of(strings.Replace(race, "audit.AddAuditAnnotationsMap()", "audit.(*AuditContext).annotateAll()", 1)), met: check.True,
			evidence: logs, seen: "1 of 1 races", wanted: "a race in kube-apiserver with json.mapEncoder.encode on one side", detail: "audit.(*AuditContext).annotateAll()"},
		{name: "a race of something else", spec: `{"component":"kube-apiserver","sides":[["x.main"]]}`, fill: of(race), met: check.False, evidence: logs, seen: "0 of 1 races",
			differs: []string{"runtime.mapassign_faststr against k8s.io/json.mapEncoder.encode"}},
		{name: "there must be none", spec: noneEncodes, fill: of(race), met: check.False, evidence: logs, seen: "1 of 1 races", detail: "Write:",
			wanted: "no race in kube-apiserver with json.mapEncoder.encode on one side"},
		{name: "there is none", spec: noneEncodes, fill: of("I1122 quiet"), met: check.True, evidence: logs, seen: "0 of 0 races"},
		{name: "there may be one", spec: noneEncodes, fill: of(without), met: check.Unknown, evidence: logs, seen: "another report has not both stacks"},
		{name: "the same before each line", fill: of("stderr: " + strings.ReplaceAll(race, "\n", "\nstderr: ")), met: check.True, evidence: logs, seen: "1 of 1 races", detail: "Write:"},
		{name: "a time before each line", fill: of("10:00:01 " + strings.Replace(strings.ReplaceAll(race, "\n", "\n10:00:01 "), "\n10:00:01 W", "\n10:00:00 W", 1)), met: check.Unknown,
			evidence: logs, seen: "another report has not both stacks"},
		{name: "in a line of JSON", fill: of(`{"msg":"stderr","text":"` + strings.ReplaceAll(race, "\n", `\n`) + `"}`), met: check.True, evidence: logs, seen: "1 of 1 races", detail: "Write:"},
		{name: "in a line of JSON that was cut", fill: of(`{"msg":"stderr","text":"` + strings.ReplaceAll(race, "\n", `\n`)), met: check.Unknown, evidence: logs, seen: "another report has not both stacks"},
		{name: "no list", spec: `{"component":"kube-apiserver","sides":[]}`, fill: of(race), met: check.Unknown, seen: "sides has 0 lists (want 1 or 2)"},
	}
	run(t, qs, func(q *question) {
		q.kind, q.scope = "raced", check.Scope{Arm: arm, Phase: check.Fault}
		if q.spec == "" {
			q.spec = `{"component":"kube-apiserver","sides":[["audit.AddAuditAnnotationsMap"],["json.mapEncoder.encode"]]}`
		}
	})
}
