package cli

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/plan/candidate"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// completion lists what may follow on a command line, each with a description after a tab if it has one.
type completion = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective)

// completes says how the values of flags are completed. A flag that the command doesn't have is left out.
func completes(cmd *cobra.Command, of map[string]completion) {
	for name, f := range of {
		if cmd.Flag(name) == nil {
			continue
		}
		if err := cmd.RegisterFlagCompletionFunc(name, f); err != nil {
			panic(err) // the flag is there, and nothing else completes it
		}
	}
}

// completeFlags completes the values of the flags that shape a run, which depend on the scenario that is named.
func completeFlags(cmd *cobra.Command) {
	completes(cmd, map[string]completion{
		"pair":    fromScenario(pairsToType),
		"arms":    inList(fromScenario(armsToType)),
		"without": inList(fromScenario(faultsOf)),
		"set":     fromScenario(parametersToType),
		"swap":    fromScenario(swapsToType),
		"provider": fromScenario(
			func(s *scenario.Scenario) []string { return append([]string{autoProvider}, s.Spec.RunsOn()...) },
		),
		"candidate": completeCandidate,
		"node-image": cobra.FixedCompletions(
			[]string{"auto", "official", "assembled"},
			cobra.ShellCompDirectiveNoFileComp,
		),
		"progress": cobra.FixedCompletions(progressModes, cobra.ShellCompDirectiveNoFileComp),
	})
}

// fromScenario completes by the scenario that the command line names.
func fromScenario(list func(*scenario.Scenario) []string) completion {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		s, err := loadScenario(cmd, args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		out := list(s)
		directive := cobra.ShellCompDirectiveNoFileComp
		if slices.ContainsFunc(out, func(o string) bool { return strings.HasSuffix(o, "=") }) {
			directive |= cobra.ShellCompDirectiveNoSpace // a value follows
		}
		return out, directive
	}
}

// inList completes the last of several values between commas.
func inList(one completion) completion {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		out, directive := one(cmd, args, prefix)
		before := prefix[:strings.LastIndex(prefix, ",")+1]
		given := strings.Split(before, ",")
		var left []string
		for _, o := range out {
			if !slices.Contains(given, o) {
				left = append(left, before+o)
			}
		}
		return left, directive
	}
}

func pairsToType(s *scenario.Scenario) []string {
	var out []string
	for _, p := range s.Spec.Pairs {
		out = append(out, described(p.Name, p.Doc))
	}
	return append(out, described(plan.AllPairs, "every pair of the scenario"))
}

// armsToType returns the names of the arms of all pairs, each once.
func armsToType(s *scenario.Scenario) []string {
	var out []string
	for _, p := range s.Spec.Pairs {
		out = append(out, armsOf(p)...)
	}
	slices.Sort(out)
	return append(slices.Compact(out), scenario.Candidate)
}

func swapsToType(s *scenario.Scenario) []string {
	var out []string
	for _, a := range armsToType(s) {
		out = append(out, a+"=")
	}
	return out
}

func parametersToType(s *scenario.Scenario) []string {
	var out []string
	for _, p := range s.Spec.Parameters {
		out = append(out, p.Name+"=")
	}
	return out
}

// described adds the first line of a description to a word.
func described(word, doc string) string {
	doc, _, _ = strings.Cut(strings.TrimSpace(doc), "\n")
	if doc == "" {
		return word
	}
	return word + "\t" + doc
}

// completeCandidate completes the form of a candidate, and below a form of files the path.
func completeCandidate(
	_ *cobra.Command,
	_ []string,
	prefix string,
) ([]string, cobra.ShellCompDirective) {
	form, path, chosen := strings.Cut(prefix, ":")
	if !chosen {
		return candidate.Forms(), cobra.ShellCompDirectiveNoSpace
	}
	if form != "bin" && form != "src" && form != "patch" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, err := filepath.Glob(escaped(path) + "*")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []string
	for _, f := range found {
		switch {
		case isDir(f):
			out = append(out, form+":"+f+"/")
		case form != "src":
			out = append(out, form+":"+f)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeRuns completes the names of runs of which something is left.
func completeRuns(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names, err := runsLeft()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
