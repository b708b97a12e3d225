package match

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// anothersMain returns the program that a dump's main package shows, if it is none that runs Kubernetes' components: it is
// linked with their packages, and calls them for its own ends. Kubernetes' own main functions begin no goroutine, and
// call nothing but the component's command.
func anothersMain(d *goroutine.Dump) owner {
	if _, host := hostOf(d); host || runsCommand(d) {
		return owner{}
	}
	for _, g := range d.Groups {
		function, file := g.CreatedBy, g.CreatedAt.File
		for _, f := range g.Frames {
			if isMain(f.Func) { // the outermost counts
				function, file = f.Func, f.File
			}
		}
		if !isMain(function) || ofKubernetesMain.MatchString(function) ||
			ofKubernetesMain.MatchString(file) {
			continue
		}
		return owner{program(g, file), "its main package, whose " + function + " is in " + file}
	}
	return owner{}
}

// isMain reports whether a function is of the main package of a program.
func isMain(function string) bool { return strings.HasPrefix(function, "main.") }

// ofKubernetesMain matches main functions, and files of main packages, of Kubernetes' components and of the programs that
// run them.
var ofKubernetesMain = regexp.MustCompile(
	`^main\.\(\*HyperKube\)|(?:^|/)cmd/(?:kube-apiserver|kube-controller-manager|kube-scheduler|kube-proxy|` +
		`kubelet|cloud-controller-manager|hyperkube|kubelite|hypershift|openshift|k3s|rke2|k0s)/`,
)

// runsCommand reports whether a dump has a function of the command of a component, which its main function calls.
func runsCommand(d *goroutine.Dump) bool {
	for _, g := range d.Groups {
		for _, f := range g.Frames {
			if strings.HasPrefix(f.Func, "k8s.io/kubernetes/cmd/") ||
				strings.HasPrefix(f.Func, "k8s.io/component-base/cli.") {
				return true
			}
		}
	}
	return false
}

// program returns the name of a program by the folder of its command, or by the module that its main package calls; it is
// another program if neither is known.
func program(g goroutine.Group, file string) string {
	if m := commandFile.FindStringSubmatch(file); m != nil {
		return m[1]
	}
	for _, f := range slices.Backward(g.Frames) {
		if m := module(f.Func); m != "" && !strings.HasPrefix(m, "k8s.io/") && !slices.Contains(libraries, m) {
			return m
		}
	}
	return "another program"
}
