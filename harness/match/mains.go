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
		return mainOwner(g, function, file)
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

// mainOwner returns the program whose main package has a function, by the folder of its command, or by the module that its
// main function calls; it is another program if neither is known.
func mainOwner(g goroutine.Group, function, file string) owner {
	by := "its main package, whose " + function + " is in " + file
	if m := commandFile.FindStringSubmatch(file); m != nil {
		return owner{m[1], by}
	}
	for _, f := range slices.Backward(g.Frames) {
		m := module(f.Func)
		if m == "" || strings.HasPrefix(m, "k8s.io/") || slices.Contains(libraries, m) {
			continue
		}
		if function == "main.main" {
			by = "what its main function has called, " + f.Func
		}
		return owner{m, by}
	}
	return owner{"another program", by}
}

// hasMain reports whether a dump has the main goroutine of a process.
func hasMain(d *goroutine.Dump) bool {
	return slices.ContainsFunc(
		d.Groups,
		func(g goroutine.Group) bool { return slices.Contains(g.IDs, 1) },
	)
}

// ofMains reports whether a dump is of one of the programs of mains, by what its main function has called.
func ofMains(d *goroutine.Dump) bool {
	for _, g := range d.Groups {
		for _, f := range g.Frames {
			for prefix := range mains {
				if strings.HasPrefix(f.Func, prefix) {
					return true
				}
			}
		}
	}
	return false
}

// fromModules returns the program that has Kubernetes' packages from Go's cache of modules: its main module is another
// one. Kubernetes' components and the programs that run them are built within its repository, or a copy of it.
func fromModules(d *goroutine.Dump) owner {
	if _, host := hostOf(d); host {
		return owner{}
	}
	for _, g := range d.Groups {
		for _, f := range g.Frames {
			if strings.Contains(f.File, "/pkg/mod/k8s.io/kubernetes@") {
				return owner{"another program", "the module that it has Kubernetes' packages from, " + f.File}
			}
		}
	}
	return owner{}
}
