package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// A check that nothing at all would meet needs one beside it that shows the evidence. What shows it must hold whenever the
// check is asked: another alternative of its group doesn't.
func TestVacuousChecksNeedCompanions(t *testing.T) {
	asks := func(name, kind, spec string) scenario.Check {
		return scenario.Check{CheckHeader: scenario.CheckHeader{Name: name, Kind: kind, Phase: "fault"}, Spec: json.RawMessage(spec)}
	}
	anyOf := func(all ...scenario.Check) scenario.Check {
		return scenario.Check{CheckHeader: scenario.CheckHeader{Name: "either", Phase: "fault"}, AnyOf: all}
	}
	absent := asks("absent", "logCount", `{"component": "etcd", "pattern": "panic", "atMost": 0}`)
	there := asks("there", "logCount", `{"component": "etcd", "pattern": "sync", "atLeast": 1}`)
	more := asks("more", "logCount", `{"component": "etcd", "pattern": "sync", "atLeast": 9}`)
	counts := asks("counts", "metricIncrease", `{"metric": "queue", "by": {"number": 1}}`)
	countsNone := asks("absent", "metricAbsent", `{"metric": "queue"}`)
	const nothing = `check "absent" is also met if there was nothing to see (want a check beside it`
	for _, c := range []struct {
		name  string
		added []scenario.Check
		want  string // "" for none
	}{
		{"alone", []scenario.Check{absent}, nothing},
		{"beside another", []scenario.Check{absent, there}, ""},
		{"an alternative of what shows it", []scenario.Check{anyOf(absent, there)}, nothing},
		{"an alternative, and what shows it beside the group", []scenario.Check{anyOf(absent, more), there}, ""},
		{"beside a group of which one shows it", []scenario.Check{absent, anyOf(there, counts)}, nothing},
		{"a metric that a build may not have", []scenario.Check{countsNone}, nothing},
		{"an alternative to the metric that a build may not have", []scenario.Check{anyOf(countsNone, counts)}, ""},
		{"an alternative to another metric", []scenario.Check{anyOf(countsNone, asks("age", "metricIncrease", `{"metric": "age", "by": {"number": 1}}`))}, nothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := load(t)
			s.Spec.Collectors = append(s.Spec.Collectors, scenario.Collector{CollectorHeader: scenario.CollectorHeader{Name: "logs", Kind: "componentLogs"}})
			s.Spec.Exposure = append(s.Spec.Exposure, c.added...)
			_, err := plan.New(s, plan.Options{})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
