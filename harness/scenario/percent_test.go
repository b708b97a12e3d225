package scenario_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// Modes of percent take a share from 1 to 100, and no other mode but fixed takes a value.
func TestTargetModes(t *testing.T) {
	for _, tc := range []struct{ target, want string }{
		{`mode: fixed-percent, value: "50"`, ""},
		{`mode: random-max-percent, value: "100"`, ""},
		{`mode: fixed, value: "2"`, ""},
		{`mode: fixed-percent`, `spec.faults[0].target.value: "" is no percentage (want 1 to 100 with mode fixed-percent)`},
		{`mode: fixed-percent, value: "0"`, `spec.faults[0].target.value: "0" is no percentage (want 1 to 100 with mode fixed-percent)`},
		{`mode: random-max-percent, value: "101"`, `spec.faults[0].target.value: "101" is no percentage (want 1 to 100 with mode random-max-percent)`},
		{`mode: random-max-percent, value: half`, `"half" is no percentage`},
		{`mode: one, value: "1"`, `spec.faults[0].target.value: stands beside mode one (want it with mode fixed, fixed-percent or random-max-percent only)`},
		{`mode: most`, `spec.faults[0].target.mode: unknown mode "most" (want one of one, all, fixed, fixed-percent, random-max-percent`},
	} {
		_, err := scenario.Parse("scenario.yaml", []byte(strings.Replace(text(t), "mode: all", tc.target, 1)))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: got  %v\nwant %s", tc.target, err, tc.want)
		}
	}
}
