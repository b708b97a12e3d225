package scenario_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/scenario"
)

func TestOverride(t *testing.T) {
	defaults := map[string]string{"latency": "40ms", "pods": "400", "rate": "0.5", "metric": "blocked", "call": "", "apiserver.memory": ""}
	for _, c := range []struct {
		name           string
		set, change    map[string]string
		without        string // the parameter that has no value then
		latency, flood string // specs
		memory         string
	}{
		{"typed", map[string]string{"pods": "12", "call": "Put"}, map[string]string{"pods": "12", "call": "Put"}, "",
			`{"calls":["Put","List","Get"],"latency":"40ms"}`, `{"inner":{"rate":0.5},"pods":12}`, ""},
		{"implied", map[string]string{"apiserver.memory": "512Mi"}, map[string]string{"apiserver.memory": "512Mi", "pods": "900", "latency": "2s"}, "",
			`{"calls":["List","Get"],"latency":"2s"}`, `{"inner":{"rate":0.5},"pods":900}`, "512Mi"},
		{"implied and set", map[string]string{"apiserver.memory": "512Mi", "pods": "7"},
			map[string]string{"apiserver.memory": "512Mi", "pods": "7", "latency": "2s"}, "",
			`{"calls":["List","Get"],"latency":"2s"}`, `{"inner":{"rate":0.5},"pods":7}`, "512Mi"},
		{"a path beside it", map[string]string{"pods": "12", "faults.slow.spec.calls": "[Get]"}, map[string]string{"pods": "12"}, "call",
			`{"calls":["Get"],"latency":"40ms"}`, `{"inner":{"rate":0.5},"pods":12}`, ""},
		{"a field taken away", map[string]string{"pods": "12", "faults.slow.spec.calls": "null"}, map[string]string{"pods": "12"}, "call",
			`{"latency":"40ms"}`, `{"inner":{"rate":0.5},"pods":12}`, ""},
		{"a path with a reference", map[string]string{"faults.slow.spec.calls": "[$(metric)]"}, nil, "call",
			`{"calls":["blocked"],"latency":"40ms"}`, `{"inner":{"rate":0.5},"pods":400}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := scenario.Override(loadParams(t), c.set)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(s.Spec.Faults[0].Spec); got != c.latency {
				t.Errorf("spec of slow is %s, want %s", got, c.latency)
			}
			if got := string(s.Spec.Faults[1].Spec); got != c.flood {
				t.Errorf("spec of flood is %s, want %s", got, c.flood)
			}
			if got := s.Spec.Memory["kube-apiserver"]; got != c.memory {
				t.Errorf("memory is %q, want %q", got, c.memory)
			}
			want := map[string]string{}
			for name, v := range defaults {
				if changed, ok := c.change[name]; ok {
					v = changed
				}
				if name != c.without {
					want[name] = v
				}
			}
			if diff := cmp.Diff(want, s.Values); diff != "" {
				t.Errorf("values: -want +got:\n%s", diff)
			}
			if s.Origin.File != parametrised || len(s.Origin.Digest) != 64 {
				t.Errorf("origin is %+v", s.Origin)
			}
		})
	}
}

// Settings add up, and the scenario that they start from stays what it is.
func TestOverridesAddUpAndLeaveTheirScenarioAsItIs(t *testing.T) {
	s := loadParams(t)
	once, err := scenario.Override(s, map[string]string{"pods": "12", "phases.fault.deadline": "9m"})
	if err != nil {
		t.Fatal(err)
	}
	twice, err := scenario.Override(once, map[string]string{"latency": "1s"})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(twice.Spec.Faults[1].Spec); got != `{"inner":{"rate":0.5},"pods":12}` {
		t.Errorf("the first setting is lost: %s", got)
	}
	if got := twice.Spec.Phases.Fault.Deadline.Duration.String(); got != "9m0s" {
		t.Errorf("the first path is lost: %s", got)
	}
	if got := twice.Values["latency"]; got != "1s" {
		t.Errorf("latency is %s", got)
	}
	if got := s.Values["pods"]; got != "400" || s.Spec.Phases.Fault.Deadline.Duration.String() != "8m0s" {
		t.Errorf("the scenario itself was changed: pods %s, phases %+v", got, s.Spec.Phases)
	}
}

func TestOverrideRefuses(t *testing.T) {
	const known = "(want one of apiserver.memory, call, latency, metric, pods, rate"
	for _, c := range []struct {
		name string
		set  map[string]string
		want string
	}{
		{"another type", map[string]string{"pods": "abc"}, `setting pods: "abc" is no integer`},
		{"everything at once", map[string]string{"pods": "1001", "latency": "5", "apiserver.memory": "a lot", "rate": "NaN"},
			`setting apiserver.memory: "a lot" is no quantity (want for example 512Mi)` + "\n" +
				`setting latency: "5" is no duration (want one with its unit: 250ms, 40s, 1m30s)` + "\n" +
				"setting pods: 1001 is too large (want at most 1000)\n" + `setting rate: "NaN" is no number`},
		{"unknown", map[string]string{"apiserver.memry": "1Gi"},
			"setting apiserver.memry: there is no such parameter, and no such field of spec " + known + "; did you mean apiserver.memory?)"},
		{"nothing known is near", map[string]string{"x": "1"}, "setting x: there is no such parameter, and no such field of spec " + known + ")"},
		{"none of the values", map[string]string{"metric": "stck"}, `setting metric: "stck" is not one of its values (want one of blocked, stuck; did you mean stuck?)`},
		{"no effect", map[string]string{"call": "Put", "faults.slow.spec.calls": "[Get]"}, "setting call: another setting replaces what it would change"},
		{"a path to nothing", map[string]string{"faults.slw.spec.latency": "1s"}, `setting faults.slw.spec.latency: nothing there is called "slw" (want one of slow, flood; did you mean slow?)`},
		{"a second name", map[string]string{"faults.0.spec.latency": "1s"}, `setting faults.0.spec.latency: nothing there is called "0" (want one of slow, flood)`},
		{"what it leads to", map[string]string{"rate": "0.1", "faults.slow.spec.latency": "5"},
			"params with settings: spec.faults[0].spec.latency: 5 is no duration (want how much later each call answers; a duration with its unit: 250ms, 40s, 1m30s)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := scenario.Override(loadParams(t), c.set)
			if err == nil {
				t.Fatal("it was taken")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Two parameters that imply different values of a third one need a word from the user.
func TestOverrideImpliedTwice(t *testing.T) {
	in := strings.Replace(paramsText(t), "doc: one more call that is delayed", "doc: one more call, implies: {pods: 3}", 1)
	s, err := scenario.Parse("f.yaml", []byte(in))
	if err != nil {
		t.Fatal(err)
	}
	_, err = scenario.Override(s, map[string]string{"call": "Put", "apiserver.memory": "1Gi"})
	want := "call implies pods 3 and apiserver.memory implies 900 (want --set pods=… to decide)"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err := scenario.Override(s, map[string]string{"call": "Put", "apiserver.memory": "1Gi", "pods": "5"}); err != nil {
		t.Error(err)
	}
}

// A change in memory isn't undone in silence.
func TestOverrideOfAChangedScenario(t *testing.T) {
	s := loadParams(t)
	s.Spec.Title = "Another one"
	_, err := scenario.Override(s, map[string]string{"pods": "1"})
	want := "scenario params was changed in memory since it was read from " + parametrised + ": it takes no settings"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	s.Origin = nil
	out, err := scenario.Override(s, map[string]string{"title": "A third one"})
	if err != nil || out.Spec.Title != "A third one" || out.Origin != nil {
		t.Errorf("a scenario without a file: %v, %v", out, err)
	}
}
