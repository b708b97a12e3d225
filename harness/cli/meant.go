package cli

import (
	"strings"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// nearest returns the known name that a word most likely means, "" if that can't be told: the one that is spelt almost
// like it, or else the only one that it begins or that has it as one of its parts.
func nearest(word string, known []string) string {
	if near := scenario.Nearest(word, known); near != "" {
		return near
	}
	const tooShort = 3 // such a word is in too many names
	if len(word) < tooShort {
		return ""
	}
	found := ""
	for _, k := range known {
		if !strings.HasPrefix(k, word) && !strings.Contains("-"+k+"-", "-"+word+"-") {
			continue
		}
		if found != "" {
			return ""
		}
		found = k
	}
	return found
}

// oneOf lists the known names in parentheses, and says which of them a word probably means.
func oneOf(word string, known []string) string {
	if len(known) == 0 {
		return "(there are none)"
	}
	out := "(want one of " + strings.Join(known, ", ")
	if near := nearest(word, known); near != "" {
		out += "; did you mean " + near + "?"
	}
	return out + ")"
}
