package conformance_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/scenarios/fleet-status-churn/kinds"
)

// policy holds the fields of an audit policy that matter here.
type policy struct {
	Rules []struct {
		Level      string
		UserGroups []string
		Verbs      []string
		Resources  []struct {
			Group     string
			Resources []string
		}
	}
}

// records tells whether a rule for service accounts records every write of a resource and its subresources.
func (p policy) records(resource string) bool {
	name, group, _ := strings.Cut(resource, ".")
	for _, r := range p.Rules {
		if r.Level == "None" || !slices.Contains(r.UserGroups, "system:serviceaccounts") {
			continue
		}
		for _, of := range r.Resources {
			if of.Group == group && slices.Contains(of.Resources, name) && (group == "" || slices.Contains(of.Resources, name+"/*")) {
				return !slices.ContainsFunc([]string{"create", "update", "patch", "delete", "deletecollection"},
					func(verb string) bool { return !slices.Contains(r.Verbs, verb) })
			}
		}
	}
	return false
}

// On every control plane the audit policy records what a scenario's checks count in the audit log. The checks count
// the writes of the service account that the scenario's manifests give each arm.
func TestAuditPoliciesRecordWhatIsCounted(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/*/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, file := range files {
		s, err := scenario.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.New(s, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Trials[0].Healed {
			counts, ok := c.Spec.(*kinds.WritesTried)
			if !ok {
				continue
			}
			asked++
			for _, n := range p.Trials[0].Clusters[0].Topology.Nodes {
				if n.Role != "control-plane" {
					continue
				}
				var has policy
				if err := yaml.Unmarshal([]byte(n.OwnFiles["kube-apiserver"][n.Args["kube-apiserver"]["audit-policy-file"]]), &has); err != nil {
					t.Fatal(err)
				}
				for _, r := range counts.Resources {
					if !has.records(r) {
						t.Errorf("%s: the audit policy of %s doesn't record all writes of %s, which %s counts", s.Metadata.Name, n.Name, r, c.Name)
					}
				}
			}
			for _, arm := range p.Trials[0].Arms {
				if want := "system:serviceaccount:" + arm.Namespace + ":fleet-agent"; strings.ReplaceAll(counts.User, "$(arm)", arm.Name) != want {
					t.Errorf("%s: %s counts the writes of %s, and %s is %s", s.Metadata.Name, c.Name, counts.User, arm.Name, want)
				}
			}
		}
	}
	if asked == 0 {
		t.Error("no scenario counts writes by the audit log")
	}
}
