package scenario_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// withManifest is the fixture with a pasted manifest as its first fault, at line 24.
func withManifest(t *testing.T, manifest string) string {
	t.Helper()
	in := strings.Replace(text(t), "    - name: slow\n      kind: testLatency\n      target: {mode: all, selector: {component: kubelet}}\n      spec: {latency: 40ms}\n", manifest, 1)
	if in == text(t) {
		t.Fatal("the fixture has no fault to replace")
	}
	return in
}

const pulse = `    - apiVersion: pulse.example/v1
      kind: Pulse
      metadata: {name: slow}
      spec: {pulses: [40ms]}
`

// A manifest becomes an item; another item can come after it, and its fields are set in the manifest's own words.
func TestAPastedManifestBecomesAnItem(t *testing.T) {
	s, err := scenario.Parse("f.yaml", []byte(withManifest(t, pulse)))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Spec.Faults[0]; got.Kind != "testLatency" || got.Name != "slow" || string(got.Spec) != `{"latency":"40ms"}` || got.Target.Selector.Component != "etcd" {
		t.Errorf("it becomes %+v with spec %s", got, got.Spec)
	}
	s, err = scenario.Override(s, map[string]string{"faults.slow.spec.pulses": "[1s]"})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(s.Spec.Faults[0].Spec); got != `{"latency":"1s"}` {
		t.Errorf("the setting gives %s", got)
	}
}

func TestManifestViolations(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"the item is wrong where the manifest is", "[40ms]", "[5]",
			"f.yaml:27:23: spec.faults[0].spec.latency: 5 is no duration (want how much later each call answers; a duration with its unit: 250ms, 40s, 1m30s)"},
		{"a name that is taken", "name: slow", "name: flood", "f.yaml:28:13: spec.faults[1].name: \"flood\" is named twice (first in spec.faults[0])\n" +
			"f.yaml:31:21: spec.faults[1].after.name: \"slow\" names no load or fault (want one of flood)"},
		{"objections", "{pulses: [40ms]}", "{pulses: [1s, 2s], echo: 1}",
			"f.yaml:27:14: spec.faults[0].spec.pulses: are too many\nf.yaml:27:38: spec.faults[0].spec.echo: is nothing that we have"},
		{"of no tool", "pulse.example/v1", "pulse.example/v2",
			`f.yaml:24:19: spec.faults[0].apiVersion: "pulse.example/v2" is of no manifest that can be converted (want one of pulse.example/v1; did you mean pulse.example/v1?)`},
		{"a reference to nothing", "[40ms]", "[$(late)]",
			"f.yaml:27:23: spec.faults[0].spec.pulses[0]: $(late) names no parameter (none is known); $$(late) is the text itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := strings.Replace(pulse, c.old, c.new, 1)
			if in == pulse {
				t.Fatalf("the manifest has no %q", c.old)
			}
			_, err := scenario.Parse("f.yaml", []byte(withManifest(t, in)))
			if err == nil {
				t.Fatal("it is valid")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
