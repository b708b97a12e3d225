package match_test

import (
	"os"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// What is wrong in a match section is told with its place.
func TestMatchSection(t *testing.T) {
	text, err := os.ReadFile("../../scenarios/scheduler-nil-pointer/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scenario.Parse("../../scenarios/scheduler-nil-pointer/s.yaml", text); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"'>=1.25.0 <1.25.7 || >=1.26.0 <1.26.2'", "before 1.26", `"before 1.26" is not a range of versions`},
		{"    fixed: v1.25.7", "    # fixed: v1.25.7", "has one of affected and fixed (want both, or neither)"},
		{"        is: decisive", "        is: suspicious", "has no decisive sign, so that the incident would never be met"},
		{"        is: decisive", "        is: likely", `unknown is "likely" (want one of decisive, suspicious)`},
		{"        panicked:", "        paniced:", `unknown check kind "paniced"`},
		{"        check: by-the-log\n", "        check: by-the-log\n        pattern: ''\n", "pattern is empty, which every line would match"},
	} {
		at := strings.LastIndex(string(text), c.old)
		if at < 0 {
			t.Fatalf("the scenario has no %q", c.old)
		}
		_, err := scenario.Parse("../../scenarios/scheduler-nil-pointer/s.yaml", []byte(string(text[:at])+c.new+string(text[at+len(c.old):])))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.new, err, c.want)
		}
	}
}
