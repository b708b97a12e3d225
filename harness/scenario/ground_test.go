package scenario_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/scenario"
)

const one = "because: {check: stuck, is: met}"

// A candidate says by which checks it is right, and each is looked up in its scenario.
func TestGroundsAreLookedUpInTheScenario(t *testing.T) {
	for _, tc := range []struct{ name, because, want string }{
		{"one", one, "stuck in signature"},
		{"a list", "because: [{check: stuck, is: met}, {check: signature/stuck, is: met}]", "stuck in signature, stuck in signature"},
		{"an alternative", "because: [{check: stuck, is: met}, {check: discards, is: met}]", "stuck in signature, discards in exposure"},
		{"a question that is built in", "because: [{check: stuck, is: met}, {check: built-in/process, is: met, sometimes: true}]",
			"stuck in signature, process in built-in"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all, err := withCandidates(t, map[string]string{"larger.yaml": strings.Replace(larger, one, tc.because, 1)}).Candidates()
			if err != nil || len(all) != 1 {
				t.Fatalf("candidates %v, error %v", all, err)
			}
			var got []string
			for _, g := range all[0].Spec.Because {
				got = append(got, g.Name+" in "+g.List)
			}
			if strings.Join(got, ", ") != tc.want {
				t.Errorf("grounds %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWrongGrounds(t *testing.T) {
	for _, tc := range []struct{ name, old, new, want string }{
		{"none", "  " + one + "\n", "", `larger.yaml:4:1: spec.because: is missing (want the checks by which its outcome is right, each with its answer)`},
		{"an empty list", one, "because: []", `larger.yaml:8:3: spec.because: is an empty list (want at least 1)`},
		{"no answer", one, "because: {check: stuck}", `larger.yaml:8:3: spec.because.is: is missing (want one of met, notMet, unknown)`},
		{"another answer", one, "because: {check: stuck, is: broken}", `larger.yaml:8:31: spec.because.is: unknown is "broken" (want one of met, notMet, unknown`},
		{"a misspelt check", one, "because: {check: stock, is: met}",
			`larger.yaml:8:20: spec.because.check: "stock" is no check of pleg that decides an outcome (want one of ready, reached, stale, discards, stuck, advancing, built-in/binary, built-in/process, built-in/ready, built-in/stuck, built-in/heap, built-in/cpu; did you mean stuck?)`},
		{"a check of another list", one, "because: [{check: healed/stuck, is: met}]", `larger.yaml:8:21: spec.because[0].check: "healed/stuck" is no check of pleg`},
		{"a built-in question without its list", one, "because: {check: process, is: notMet}", `"process" is no check of pleg`},
		{"no sign of the incident", one, "because: {check: reached, is: met}",
			`larger.yaml:8:3: spec.because: Reproduced can't rest on this (want a check of signature that is met)`},
		{"a cure without its health", "right: Reproduced", "right: NotReproduced", `NotReproduced can't rest on this (want a check of exposure that is met)`},
		{"well, and Broken", "right: Reproduced", "right: Broken",
			`Broken can't rest on this (want a check of healed, built-in/process or built-in/ready that is notMet)`},
		{"answered, and Inconclusive", "right: Reproduced", "right: Inconclusive", `Inconclusive can't rest on this (want a check that is notMet or unknown)`},
		{"only sometimes", one, "because: {check: stuck, is: met, sometimes: true}",
			`spec.because: nothing decides in pair modern (want a check that it asks, without sometimes)`},
		{"what the outcome rests on only sometimes", one, "because: [{check: reached, is: met}, {check: stuck, is: met, sometimes: true}]",
			`larger.yaml:8:3: spec.because: Reproduced can't rest on this (want a check of signature that is met, without sometimes)`},
		{"a misspelt check that decides only sometimes", one, "because: [{check: stuck, is: met}, {check: stock, is: met, sometimes: true}]",
			`larger.yaml:8:46: spec.because[1].check: "stock" is no check of pleg that decides an outcome`},
		{"sometimes without yes or no", one, "because: [{check: stuck, is: met}, {check: reached, is: met, sometimes: often}]",
			`larger.yaml:8:75: spec.because[1].sometimes: `},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := withCandidates(t, map[string]string{"larger.yaml": strings.Replace(larger, tc.old, tc.new, 1)}).Candidates()
			var vs scenario.Violations
			if !errors.As(err, &vs) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v\nwant %s", err, tc.want)
			}
		})
	}
}

// Where lists share a name, the list has to be named; a check that only some pairs ask is none for the others.
func TestGroundsOfOneNameAndOfOnePair(t *testing.T) {
	raw, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := strings.Index(string(raw), "    - name: modern"), strings.Index(string(raw), "  collectors:")
	other := strings.Replace(string(raw[begin:end]), "modern", "other\n      default: true", 1)
	text := strings.NewReplacer("name: advancing", "name: ready", "{name: stuck,", "{name: stuck, pairs: [other],",
		"  collectors:", other+"  collectors:").Replace(string(raw))
	for _, tc := range []struct{ because, want string }{
		{"because: {check: ready, is: met}", `"ready" stands in steady and in healed (want steady/ready or healed/ready)`},
		{"because: {check: stuck, is: met}", `spec.because: nothing decides in pair modern (want a check that it asks, without sometimes)`},
	} {
		_, err := withScenario(t, text, map[string]string{"larger.yaml": strings.Replace(larger, one, tc.because, 1)}).Candidates()
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %s", tc.because, err, tc.want)
		}
	}
}
