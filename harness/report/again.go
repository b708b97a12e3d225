package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// again returns the commands that repeat the run, the one to start with first. The last command uses the run's own
// plan, which has what a command line can't say.
func again(v judge.Verdict) []string {
	exact := "relapse run -f plan.json"
	if len(v.Trials) == 0 {
		return []string{exact}
	}
	var pairs []string
	trials, candidate := map[string]int{}, false
	var known []string // the names of the scenario's own candidates
	for _, t := range v.Trials {
		if trials[t.Pair]++; trials[t.Pair] == 1 {
			pairs = append(pairs, t.Pair)
		}
		for _, a := range t.Arms {
			switch {
			case a.Role != scenario.Candidate:
			case scenario.IsGiven(a.Name):
				candidate = true
			case !slices.Contains(known, a.Name):
				known = append(known, a.Name)
			}
		}
	}
	cmd := []string{"relapse run", quoted(v.Scenario)}
	if len(known) > 0 {
		cmd = append([]string{"relapse oracle", quoted(v.Scenario)}, append(known, "--full")...)
	}
	switch {
	case len(pairs) == 1 && pairs[0] != "":
		cmd = append(cmd, "--pair", quoted(pairs[0]))
	case len(pairs) > 1:
		cmd = append(cmd, "--pair all")
	}
	if u := v.Until; u != nil {
		cmd = append(
			cmd,
			fmt.Sprintf(
				"--until-confident --target-rate %g --confidence %g --max-trials %d",
				u.Target,
				u.Confidence,
				u.Max,
			),
		)
	} else if n := trials[pairs[0]]; n > 1 {
		cmd = append(cmd, fmt.Sprintf("--repeat %d", n))
	}
	cmd = append(cmd, fmt.Sprintf("--seed %d", v.Seed))
	for _, k := range sortedKeys(v.Params) {
		cmd = append(cmd, "--set", quoted(k+"="+v.Params[k]))
	}
	if v.NoFaults {
		cmd = append(cmd, "--no-faults")
	}
	if candidate {
		cmd = append(cmd, "--candidate YOUR_BUILD")
	}
	return []string{strings.Join(cmd, " "), exact}
}

// quoted returns a word, quoted for a shell if it needs that.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_=./:,+@%", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
