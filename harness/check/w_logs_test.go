package check_test

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// log records lines of a component's log that was followed through from..to.
func (tr *trial) log(arm, component string, from, to float64, lines ...said) *bundle.Stream {
	tr.t.Helper()
	st, err := tr.w.Stream(bundle.Meta{Kind: bundle.Logs, Arm: arm, Component: component, Time: tr.start}, "jsonl")
	tr.must(err)
	for _, l := range lines {
		tr.must(st.JSON(bundle.LogLine{Time: tr.at(l.second), File: "kube-system_" + component + "/0.log", Text: l.message}))
	}
	st.Alive(tr.at(from))
	st.Alive(tr.at(to))
	return st
}

// said is a line of the journal at a second.
type said struct {
	second  float64
	message string
	ident   string // kubelet when empty
}

// journal records lines of a journal that was followed through from..to.
func journal(arm string, from, to float64, lines ...said) func(*trial) {
	return func(tr *trial) {
		tr.phases()
		st := tr.stream(bundle.Journal, arm)
		tr.write(st, lines...)
		st.Alive(tr.at(from))
		st.Alive(tr.at(to))
	}
}

func (tr *trial) write(st *bundle.Stream, lines ...said) {
	tr.t.Helper()
	for i, l := range lines {
		ident := l.ident
		if ident == "" {
			ident = "kubelet"
		}
		b, err := json.Marshal(map[string]string{
			"__REALTIME_TIMESTAMP": strconv.FormatInt(tr.at(l.second).UnixMicro(), 10), "__CURSOR": fmt.Sprint(i),
			"SYSLOG_IDENTIFIER": ident, "_SYSTEMD_UNIT": "kubelet.service", "MESSAGE": l.message,
		})
		tr.must(err)
		tr.must(st.Line(b))
	}
}

// skipping is kubelet's line with a threshold.
func skipping(threshold string) string {
	return `E0301 10:05:30.000000     312 kubelet.go:2506] "Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active 4m30.2s ago; threshold is ` + threshold + `"`
}

// skip is kubelet's line with an age, and the threshold of 3 minutes.
func skip(age string) string {
	return `E0301 10:05:30.000000     312 kubelet.go:2506] "Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active ` + age + ` ago; threshold is 3m0s"`
}

const (
	skipPattern = `pleg was last seen active (?P<age>[0-9hms.]+) ago; threshold is (?P<threshold>[0-9hms.]+)`
	exceeds     = `{"pattern":"` + skipPattern + `","exceeds":{"age":"threshold"}}`
	skips       = `{"log":{"pattern":"` + skipPattern + `","exceeds":"threshold"}}`
)
