package check_test

import (
	"os"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// printed is a panic in the runtime's words; inJSON is one that a program logged as JSON.
const (
	printed = `panic: runtime error: index out of range [7] with length 7
goroutine 77 [running]:
panic({0x1, 0x2})
	/usr/local/go/src/runtime/panic.go:1 +0x1
encoding/json.mapEncoder.encode({0x1})
	/usr/local/go/src/encoding/json/encode.go:1 +0x1
k8s.io/apiserver/plugin/pkg/audit/log.(*backend).logEvent(0x1)
	/src/backend.go:76 +0x1`
	inJSON = `{"ts":1764000000000.1,"msg":"Observed a panic","panic":"runtime error: index out of range [7] with length 7","stacktrace":"goroutine 77 [running]:\npanic({0x1, 0x2})\n` +
		`\t/usr/local/go/src/runtime/panic.go:1 +0x1\nencoding/json.mapEncoder.encode({0x1})\n\t/usr/local/go/src/encoding/json/encode.go:1 +0x1\n` +
		`k8s.io/apiserver/plugin/pkg/audit/log.(*backend).logEvent(0x1)\n\t/src/backend.go:76 +0x1\n"}`
)

func TestRecovered(t *testing.T) {
	real, err := os.ReadFile("../evidence/goroutine/testdata/recovered.log") // two panics of a kube-apiserver
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSuffix(string(real), "\n")
	logs := []bundle.Kind{bundle.Logs}
	at := func(second float64, text string) []said {
		var out []said
		for _, line := range strings.Split(text, "\n") {
			out = append(out, said{second: second, message: line})
		}
		return out
	}
	of := func(second float64, text string) func(*trial) {
		return func(tr *trial) { tr.phases(); tr.log(arm, "kube-apiserver", 0, 394, at(second, text)...) }
	}
	spec := func(message, frame string) string {
		return `{"component":"kube-apiserver","message":"` + message + `","frames":["` + frame + `"]}`
	}
	qs := []question{
		{name: "both of them", fill: of(100, text), met: check.True, evidence: logs, seen: "2 of 2 panics that kube-apiserver recovered from",
			wanted: `a panic like "index out of range" in json.mapEncoder.encode, log.(*backend).logEvent, logged and recovered from`,
			detail: "index out of range [16010] with length 16010\n\ngoroutine 15819 [running]:"},
		{name: "before the fault", fill: of(5, text), met: check.False, evidence: logs, seen: "0 of 0 panics"},
		{name: "another panic", spec: spec("nil pointer", "json.mapEncoder.encode"), fill: of(100, text), met: check.False, evidence: logs, seen: "0 of 2 panics",
			differs: []string{`before the stack it says "E1125`, `before the stack it says "E1125`}},
		{name: "somewhere else", spec: spec("index out of range", "x.f"), fill: of(100, text), met: check.False, evidence: logs, seen: "0 of 2 panics",
			differs: []string{"what panicked has no x.f on its stack", "what panicked has no x.f on its stack"}},
		{name: "who handled it did not panic", spec: spec("index out of range", "filters.(*timeoutHandler).ServeHTTP.func1.1"), fill: of(100, text), met: check.False, evidence: logs,
			seen: "0 of 2 panics", differs: []string{"what panicked has no filters", "what panicked has no filters"}},
		{name: "it did not live through it", fill: of(100, fatal), met: check.False, evidence: logs, seen: "0 of 0 panics"},
		{name: "a stack without an end", fill: of(100, text[:len(text)/3]), met: check.Unknown, evidence: logs, seen: "another stack has no end, can't be read, or may be its last"},
		{name: "behind a line that is like the runtime's last words", fill: of(100, "panic: in a handler, recovered from: context canceled\n"+text), met: check.True, evidence: logs, seen: "2 of 2 panics"},
		{name: "printed as the runtime does, before the log goes on", fill: of(100, printed+strings.Repeat("\nI1125 10:00:00.000000 1 x.go:1] on we go", 30)), met: check.True, evidence: logs,
			seen: "1 of 1 panics", detail: "panic: runtime error: index out of range [7] with length 7"},
		{name: "printed as the runtime does, before one more line", fill: of(100, printed+"\nI1125 10:00:00.000000 1 x.go:1] on we go"), met: check.Unknown, evidence: logs, seen: "or may be its last"},
		{name: "printed by the runtime", fill: of(100, printed), met: check.False, evidence: logs, seen: "0 of 0 panics"},
		{name: "in a line of JSON", fill: of(100, inJSON), met: check.True, evidence: logs, seen: "1 of 1 panics", detail: "index out of range [7] with length 7"},
		{name: "in a line of JSON that was cut", fill: of(100, inJSON[:200]), met: check.Unknown, evidence: logs, seen: "another stack has no end, can't be read"},
		{name: "a gap", met: check.Unknown, evidence: logs, seen: "the file was gone", fill: func(tr *trial) {
			tr.phases()
			tr.log(arm, "kube-apiserver", 0, 394).Gap(tr.at(150), tr.at(165), "the file was gone")
		}},
		{name: "no log", fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "no log of kube-apiserver was recorded"},
		{name: "no frames", spec: `{"component":"kube-apiserver","message":"x","frames":[]}`, fill: of(100, text), met: check.Unknown, seen: "frames has none"},
	}
	run(t, qs, func(q *question) {
		q.kind, q.scope = "recovered", check.Scope{Arm: arm, Phase: check.Fault}
		if q.spec == "" {
			q.spec = `{"component":"kube-apiserver","message":"index out of range","frames":["json.mapEncoder.encode","log.(*backend).logEvent"]}`
		}
	})
}
