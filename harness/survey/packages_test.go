package survey_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/survey"
)

func named(name, spec string, anyOf ...scenario.Check) scenario.Check {
	return scenario.Check{CheckHeader: scenario.CheckHeader{Name: name}, Spec: json.RawMessage(spec), AnyOf: anyOf}
}

// What a scenario changes and what it looks for on stacks are the packages of its bug.
func TestPackagesAreThoseOfTheScenario(t *testing.T) {
	mutation := scenario.Mutation{Kind: "rewrite", Spec: json.RawMessage(`{"package":"k8s.io/kubernetes/pkg/scheduler","type":"Scheduler"}`)}
	s := &scenario.Scenario{}
	s.Spec.Pairs = []scenario.Pair{{Name: "genuine"}, {Name: "modern", Arms: []scenario.Arm{{Source: scenario.Source{Mutations: []scenario.Mutation{mutation}}}}}}
	s.Spec.Constants = []scenario.Constant{{Package: "k8s.io/kubernetes/pkg/kubelet/pleg"}, {Package: "example.org/lib/v3"}}
	s.Spec.Exposure = []scenario.Check{
		named("tried", "", named("by-the-stack", `{"frames":["scheduler.(*Scheduler).findNodesThatFitPod","json.mapEncoder.encode"]}`)),
		named("relists", `{"func":"pleg.(*GenericPLEG).Relist","under":"net/http.(*conn).serve","without":["google.golang.org/grpc"]}`),
	}
	s.Spec.Signature = []scenario.Check{
		named("raced", `{"sides":[["k8s.io/apiserver/pkg/audit.log"],["lib.Encode"]],"message":"a.b"}`),
		named("counted", `{"metric":"go_goroutines"}`),
	}
	got := survey.PackagesOf(s)
	want := survey.Packages{
		Paths: []string{"k8s.io/kubernetes/pkg/scheduler", "k8s.io/apiserver/pkg/audit", "example.org/lib/v3", "k8s.io/kubernetes/pkg/kubelet/pleg"},
		From: map[string]string{
			"k8s.io/kubernetes/pkg/scheduler":    "what pair modern mutates",
			"k8s.io/apiserver/pkg/audit":         "sides of the check raced of the signature",
			"example.org/lib/v3":                 "sides of the check raced of the signature",
			"k8s.io/kubernetes/pkg/kubelet/pleg": "func of the check relists of the exposure",
		},
		Unresolved: []string{"json (frames of the check by-the-stack of the exposure)"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	s = &scenario.Scenario{}
	s.Spec.Signature = []scenario.Check{named("late", `{"func":"relist"}`)}
	if got := survey.PackagesOf(s); len(got.Paths)+len(got.Unresolved) > 0 {
		t.Errorf("without a package: %+v", got)
	}
}
