package match

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/pasted"
)

// prompt matches a command after a shell's prompt that prints what follows.
var prompt = regexp.MustCompile(`^\S{0,60}(?: [~/]\S{0,60})?[$#] (.*\b(?:logs?|journalctl|cat|zcat|tail|head|less|grep|curl|kubectl get --raw|crictl|docker)\b.*)$`)

// commands returns the commands in a text that printed what is in it.
func commands(lines []pasted.Line) (out []string) {
	for _, l := range lines {
		if m := prompt.FindSubmatch(l.Text); m != nil && len(m[1]) < 200 && len(out) < 8 {
			out = append(out, string(m[1]))
		}
	}
	return out
}

var (
	// ofWorkload matches the name of a pod that a Deployment has made, or of what has made pods.
	ofWorkload = regexp.MustCompile(`^(?:(?:deploy(?:ment)?s?|ds|daemonsets?|sts|statefulsets?)(?:\.apps)?/([a-z0-9.-]+)|` +
		`(?:pods?/)?([a-z0-9][a-z0-9.-]*)-[bcdfghjklmnpqrstvwxz2456789]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5})$`)
	// withValue are flags of kubectl logs whose value is the next word.
	withValue = []string{"-n", "--namespace", "-l", "--selector", "--tail", "--since", "--context", "--kubeconfig", "--since-time"}
)

// logsOf returns the workloads whose logs kubectl was told to print, with the container where a command names it; none
// if a command doesn't say it so that everybody knows which it is.
func logsOf(commands []string) (out []string) {
	for _, c := range commands {
		_, args, is := strings.Cut(c, " logs ")
		if !is || !strings.Contains(c, "kubectl") && !strings.HasPrefix(c, "k ") && !strings.HasPrefix(c, "oc ") {
			continue
		}
		pod, container := "", ""
		args, _, _ = strings.Cut(args, "|")
		for words := strings.Fields(args); len(words) > 0; words = words[1:] {
			switch w := words[0]; {
			case (w == "-c" || w == "--container") && len(words) > 1:
				container, words = words[1], words[1:]
			case strings.HasPrefix(w, "--container="):
				container = strings.TrimPrefix(w, "--container=")
			case slices.Contains(withValue, w) && len(words) > 1:
				words = words[1:]
			case strings.HasPrefix(w, "-"):
			case pod == "":
				pod = w
			default:
				container = w
			}
		}
		m := ofWorkload.FindStringSubmatch(pod)
		if m == nil {
			return nil
		}
		out = append(out, m[1]+m[2]+" "+container)
	}
	return out
}

// anothersLogs returns the workload whose logs all the commands of a text have printed, if none of these names is that
// of a component or of a program that runs components.
func anothersLogs(workloads []string, component string) owner {
	for _, w := range workloads {
		if strings.Contains(w, component) || slices.ContainsFunc(hosts, func(h string) bool { return strings.Contains(w, h) }) {
			return owner{}
		}
	}
	if len(workloads) == 0 {
		return owner{}
	}
	name := strings.TrimSpace(workloads[0])
	return owner{name, "the command above it, which prints the logs of " + name}
}
