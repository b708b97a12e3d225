package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/scenario"
)

func TestWhatACandidateLeavesOpenIsTheFixedArms(t *testing.T) {
	arms := []scenario.Arm{
		{Name: "vulnerable", Role: scenario.Vulnerable, Source: scenario.Source{Module: "m", Version: "v1.34.4", Package: "m/cmd/kubelet"}},
		{Name: "fixed", Role: scenario.Fixed, Source: scenario.Source{Module: "m", Version: "v1.34.8", Package: "m/cmd/kubelet", Unoptimized: []string{"m/x"}}},
	}
	for _, c := range []struct {
		name        string
		given, want scenario.Source
		doubt       string
	}{
		{"a version", scenario.Source{Module: "m", Version: "v1.34.7"}, scenario.Source{Module: "m", Version: "v1.34.7", Package: "m/cmd/kubelet", Unoptimized: []string{"m/x"}}, ""},
		{"a tree of unknown version", scenario.Source{Module: "m", Dir: "/src"},
			scenario.Source{Module: "m", Dir: "/src", Version: "v1.34.8", Package: "m/cmd/kubelet", Unoptimized: []string{"m/x"}},
			"the version of the candidate can't be told: it is stamped v1.34.8 as the fixed arm is, and whether it fits its cluster's is unknown"},
		{"an executable", scenario.Source{Binary: "/kubelet", Version: "v1.34.5"}, scenario.Source{Binary: "/kubelet", Version: "v1.34.5"}, ""},
		{"a silent executable", scenario.Source{Image: "kubelet:dev"}, scenario.Source{Image: "kubelet:dev"},
			"the candidate doesn't say its version, so whether it fits its cluster's is unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			arm, doubts, err := candidate(scenario.Pair{Arms: arms}, arms, Candidate{Source: &c.given})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := source(arm.Source), source(c.want); got != want || arm.Source.Version != c.want.Version || !slices.Equal(arm.Source.Unoptimized, c.want.Unoptimized) {
				t.Errorf("the candidate is %+v, want %+v", arm.Source, c.want)
			}
			if got := strings.Join(doubts, "; "); got != c.doubt {
				t.Errorf("doubts %q, want %q", got, c.doubt)
			}
		})
	}
	standIns := scenario.Source{Version: "v1.34.5", Replace: map[string]string{"m/api": "v0.34.4"}}
	arm, doubts, err := candidate(scenario.Pair{Arms: arms}, arms, Candidate{Source: &standIns})
	if want := "the candidate v1.34.5 is built with stand-ins for what can't be had of it: with m/api v0.34.4"; err != nil ||
		arm.Source.Replace["m/api"] != "v0.34.4" || len(doubts) != 1 || doubts[0] != want {
		t.Errorf("with stand-ins: %+v, doubts %q, %v", arm.Source, doubts, err)
	}
	arm, _, err = candidate(scenario.Pair{Arms: arms}, arms, Candidate{Source: &scenario.Source{Module: "m", Version: "v1.34.5"}, Of: "v1.34.5"})
	if err != nil || arm.Name != "candidate-v1-34-5" || arm.Source.Version != "v1.34.5" {
		t.Errorf("one that is set apart: %+v, %v", arm, err)
	}
	if _, _, err := candidate(scenario.Pair{}, append(arms, scenario.Arm{Name: scenario.Candidate}), Candidate{Source: &scenario.Source{}}); err == nil ||
		err.Error() != "adding the candidate candidate: the pair has an arm of that name already" {
		t.Errorf("a second candidate: %v", err)
	}
}

func TestAKnownCandidateIsAnArmOfItsOwnName(t *testing.T) {
	pair := scenario.Pair{Name: "modern", Arms: []scenario.Arm{
		{Name: "vulnerable", Role: scenario.Vulnerable, Source: scenario.Source{Module: "m", Version: "v1.34.4", Mutations: []scenario.Mutation{{Kind: "unselect"}}}},
	}}
	known := func(name string, pairs ...string) Candidate {
		return Candidate{Known: &scenario.CandidateFile{Metadata: scenario.Metadata{Name: name},
			Spec: scenario.CandidateSpec{Base: scenario.Vulnerable, Pairs: pairs, Mutations: []scenario.Mutation{{Kind: "rewrite"}}}}}
	}
	arm, doubts, err := candidate(pair, pair.Arms, known("larger"))
	if err != nil || len(doubts) > 0 || arm.Name != "larger" || arm.Role != scenario.Candidate || arm.Source.Version != "v1.34.4" || len(arm.Source.Mutations) != 2 {
		t.Errorf("arm %+v, doubts %v, error %v", arm, doubts, err)
	}
	for _, tc := range []struct {
		c    Candidate
		want string
	}{
		{known("vulnerable"), "adding the candidate vulnerable: the pair has an arm of that name already"},
		{known("larger", "smoke", "genuine"), "adding the candidate larger: it is made for smoke, genuine"},
	} {
		if _, _, err := candidate(pair, pair.Arms, tc.c); err == nil || err.Error() != tc.want {
			t.Errorf("error %v, want %s", err, tc.want)
		}
	}
}

func TestAClusterHasTheVersionClosestToItsCandidates(t *testing.T) {
	arm := func(version string) scenario.Arm {
		return scenario.Arm{Source: scenario.Source{Module: "m", Version: version}}
	}
	genuine := []scenario.Arm{arm("v1.23.17"), arm("v1.22.2")}
	modern := []scenario.Arm{arm("v1.34.8"), arm("v1.34.4")}
	for _, c := range []struct {
		name     string
		own      scenario.Source
		role     string
		controls []scenario.Arm
		want     string
	}{
		{"a control's own", scenario.Source{Module: "m", Version: "v1.22.2"}, scenario.Vulnerable, genuine, "v1.22.2"},
		{"a published candidate's own", scenario.Source{Module: "m", Version: "v1.24.0"}, scenario.Candidate, genuine, "v1.24.0"},
		{"within its minor", scenario.Source{Binary: "/b", Version: "v1.22.15"}, scenario.Candidate, genuine, "v1.22.2"},
		{"the closest patch", scenario.Source{Binary: "/b", Version: "v1.34.5-dirty"}, scenario.Candidate, modern, "v1.34.4"},
		{"none of its minor", scenario.Source{Binary: "/b", Version: "v1.30.0"}, scenario.Candidate, modern, "v1.34.8"},
		{"unknown", scenario.Source{Binary: "/b"}, scenario.Candidate, genuine, "v1.23.17"},
		{"nothing at all", scenario.Source{Binary: "/b"}, scenario.Candidate, nil, "v1.34.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := clusterVersion(Arm{Arm: scenario.Arm{Role: c.role, Source: c.own}}, "v1.34.0", c.controls)
			if got != c.want {
				t.Errorf("a cluster of %s, want %s", got, c.want)
			}
		})
	}
}

func TestVersionsThatDontFitAreRefused(t *testing.T) {
	for _, c := range []struct{ subject, version, cluster, want string }{
		{"kubelet", "v1.34.9", "v1.34.4", ""},
		{"kubelet", "v1.31.0", "v1.34.4", ""},
		{"kubelet", "v1.30.9", "v1.34.4", "a kubelet may be up to 3 minor versions older than its API server and never newer; want one of v1.31, v1.32, v1.33, v1.34, " +
			"or another cluster with --set version=v1.30.9"},
		{"kubelet", "v1.35.0", "v1.34.4", "a kubelet may be up to 3 minor versions older than its API server and never newer; want one of v1.31, v1.32, v1.33, v1.34, " +
			"or another cluster with --set version=v1.35.0"},
		{"kubelet", "v1.24.0", "v1.27.1", "a kubelet may be up to 2 minor versions older than its API server and never newer; want one of v1.25, v1.26, v1.27, " +
			"or another cluster with --set version=v1.24.0"},
		{"kube-apiserver", "v1.34.4-12+abc-dirty", "v1.34.8", ""},
		{"kube-apiserver", "v1.33.4", "v1.34.8", "want v1.34, the minor version of the rest of the control plane (another pair may have it: --pair)"},
		{"kube-scheduler", "v1.33.4", "v1.34.8", ""},
		{"kube-scheduler", "v1.32.4", "v1.34.8", "a kube-scheduler may be up to 1 minor versions older than its API server and never newer; want one of v1.33, v1.34, " +
			"or another cluster with --set version=v1.32.4"},
		{"kubelet", "", "v1.34.4", ""},
		{"kubelet", "unknown", "v1.34.4", ""},
		{"fleet-agent", "v0.1.0", "v1.34.4", ""},
	} {
		if got := fits(c.subject, c.version, c.cluster); got != c.want {
			t.Errorf("%s %s in a cluster of %s: %q, want %q", c.subject, c.version, c.cluster, got, c.want)
		}
	}
}
