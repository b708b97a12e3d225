package checktest

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Log records lines of a component's log that was followed through from..to.
func (tr *Trial) Log(arm, component string, from, to float64, lines ...Said) *bundle.Stream {
	tr.T.Helper()
	st, err := tr.W.Stream(
		bundle.Meta{Kind: bundle.Logs, Arm: arm, Component: component, Time: tr.Start},
		"jsonl",
	)
	tr.Must(err)
	for _, l := range lines {
		tr.Must(
			st.JSON(bundle.LogLine{
				Time: tr.At(l.Second),
				File: "kube-system_" + component + "/0.log",
				Text: l.Message,
			}),
		)
	}
	st.Alive(tr.At(from))
	st.Alive(tr.At(to))
	return st
}

// Said is a line of the journal at a second.
type Said struct {
	Second  float64
	Message string
	Ident   string // kubelet when empty
}

// Journal records lines of a journal that was followed through from..to.
func Journal(arm string, from, to float64, lines ...Said) func(*Trial) {
	return func(tr *Trial) {
		tr.Phases()
		st := tr.Stream(bundle.Journal, arm)
		tr.Write(st, lines...)
		st.Alive(tr.At(from))
		st.Alive(tr.At(to))
	}
}

// Write writes lines of a journal.
func (tr *Trial) Write(st *bundle.Stream, lines ...Said) {
	tr.T.Helper()
	for i, l := range lines {
		ident := l.Ident
		if ident == "" {
			ident = "kubelet"
		}
		b, err := json.Marshal(map[string]string{
			"__REALTIME_TIMESTAMP": strconv.FormatInt(
				tr.At(l.Second).UnixMicro(),
				10,
			),
			"__CURSOR":          fmt.Sprint(i),
			"SYSLOG_IDENTIFIER": ident,
			"_SYSTEMD_UNIT":     "kubelet.service",
			"MESSAGE":           l.Message,
		})
		tr.Must(err)
		tr.Must(st.Line(b))
	}
}

// Skipping is kubelet's line with a threshold.
func Skipping(threshold string) string {
	return `E0301 10:05:30.000000     312 kubelet.go:2506] "Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active 4m30.2s ago; threshold is ` + threshold + `"`
}

// LastSeenActive is kubelet's line with an age, and the threshold of 3 minutes.
func LastSeenActive(age string) string {
	return `E0301 10:05:30.000000     312 kubelet.go:2506] "Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active ` + age + ` ago; threshold is 3m0s"`
}

// The kubelet's line that it skips pod synchronization, as specs ask for it.
const (
	skipPattern = `pleg was last seen active (?P<age>[0-9hms.]+) ago; threshold is (?P<threshold>[0-9hms.]+)`
	Exceeds     = `{"pattern":"` + skipPattern + `","exceeds":{"age":"threshold"}}`
	Skips       = `{"log":{"pattern":"` + skipPattern + `","exceeds":"threshold"}}`
)
