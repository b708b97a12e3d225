package start_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/scenario/start"
)

// This test links no kinds, as a program that forgets them.
func TestAScenarioOfAProgramWithoutKindsIsRefusedWithWhatToImport(t *testing.T) {
	files, err := start.Scenario{Name: "stuck", Subject: "kube-scheduler", Vulnerable: "v1.36.1", Fixed: "v1.36.2"}.Files()
	if err != nil {
		t.Fatal(err)
	}
	_, err = scenario.Parse(scenario.FileName, files[scenario.FileName])
	for _, category := range []string{"fault", "check"} {
		if want := "no kind of category " + category + " is registered: import github.com/kube-relapse/relapse/scenarios"; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
