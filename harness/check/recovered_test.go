package check_test

import (
	"os"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
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
		{name: "both of them", fill: of(100, text), met: check.Met, evidence: logs, seen: "2 of 2 panics that kube-apiserver recovered from",
			wanted: `a panic like "index out of range" in json.mapEncoder.encode, log.(*backend).logEvent, logged and recovered from`,
			detail: "index out of range [16010] with length 16010\n\ngoroutine 15819 [running]:"},
		{name: "before the fault", fill: of(5, text), met: check.NotMet, evidence: logs, seen: "0 of 0 panics"},
		{name: "another panic", spec: spec("nil pointer", "json.mapEncoder.encode"), fill: of(100, text), met: check.NotMet, evidence: logs, seen: "0 of 2 panics",
			differs: []string{`before the stack it says "E1125`, `before the stack it says "E1125`}},
		{name: "somewhere else", spec: spec("index out of range", "x.f"), fill: of(100, text), met: check.NotMet, evidence: logs, seen: "0 of 2 panics",
			differs: []string{"what panicked has no x.f on its stack", "what panicked has no x.f on its stack"}},
		{name: "who handled it did not panic", spec: spec("index out of range", "filters.(*timeoutHandler).ServeHTTP.func1.1"), fill: of(100, text), met: check.NotMet, evidence: logs,
			seen: "0 of 2 panics", differs: []string{"what panicked has no filters", "what panicked has no filters"}},
		{name: "it did not live through it", fill: of(100, fatal), met: check.NotMet, evidence: logs, seen: "0 of 0 panics"},
		{name: "a stack without an end", fill: of(100, text[:len(text)/3]), met: check.Unknown, evidence: logs, seen: "another stack has no end"},
		{name: "a gap", met: check.Unknown, evidence: logs, seen: "the file was gone", fill: func(tr *trial) {
			tr.phases()
			tr.log(arm, "kube-apiserver", 0, 394).Gap(tr.at(150), tr.at(165), "the file was gone")
		}},
		{name: "no log", fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "no log of kube-apiserver was recorded"},
		{name: "no frames", spec: `{"component":"kube-apiserver","message":"x","frames":[]}`, fill: of(100, text), met: check.Unknown, seen: "frames has none"},
	}
	run(t, qs, func(q *question) {
		q.kind, q.scope = "recovered", check.Scope{Cell: arm, Phase: check.Fault}
		if q.spec == "" {
			q.spec = `{"component":"kube-apiserver","message":"index out of range","frames":["json.mapEncoder.encode","log.(*backend).logEvent"]}`
		}
	})
}
