package cluster

import (
	"maps"
	"slices"
	"strings"
)

// WithFlags returns a command line with flags added. A flag takes the place of the first of that name in it, whatever
// its form is: --name=value or, for a switch, --name. The others come at the end, in alphabetical order.
func WithFlags(own []string, flags map[string]string) []string {
	left := maps.Clone(flags)
	var out []string
	for _, arg := range own {
		name, isFlag := strings.CutPrefix(arg, "--")
		name, _, _ = strings.Cut(name, "=")
		value, asked := flags[name]
		switch _, first := left[name]; {
		case !isFlag || !asked:
			out = append(out, arg)
		case first:
			out = append(out, "--"+name+"="+value)
			delete(left, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		out = append(out, "--"+name+"="+left[name])
	}
	return out
}

// HasFlags reports whether arguments give all flags their values: the last one of each name counts.
func HasFlags(arguments []string, flags map[string]string) bool {
	have := map[string]string{}
	for _, arg := range arguments {
		if name, isFlag := strings.CutPrefix(arg, "--"); isFlag {
			name, value, _ := strings.Cut(name, "=")
			have[name] = value
		}
	}
	for name, want := range flags {
		if got, ok := have[name]; !ok || got != want {
			return false
		}
	}
	return true
}

// ParseArguments returns the arguments in the content of /proc/PID/cmdline, without the program's name.
func ParseArguments(cmdline []byte) []string {
	_, rest, _ := strings.Cut(strings.TrimSuffix(string(cmdline), "\x00"), "\x00")
	if rest == "" {
		return nil
	}
	return strings.Split(rest, "\x00")
}
