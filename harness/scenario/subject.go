package scenario

import (
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
)

// subject checks that arms can run builds of the subject. With placement workload the subject is in the manifests, which
// the plan reads.
func (r *rules) subject() {
	s := r.s.Spec
	row, _ := component.Of(s.Subject)
	switch all := component.Names(component.Replaceable); {
	case s.Subject == "" || s.Placement == "workload" || under(r.known, "spec", "placement"):
	case !slices.Contains(all, s.Subject):
		r.add(
			"spec.subject",
			"%q is no component that arms can have builds of %s",
			s.Subject,
			oneOf(s.Subject, all),
		)
	case !component.Mountable(row) && slices.Contains(s.RunsOn(), providers.Kind):
		r.add(
			"spec.providers",
			"has %s, where no program can stand in for that of %s (want [%s])",
			providers.Kind,
			s.Subject,
			providers.Processes,
		)
	case s.Placement == "node" && slices.Contains(s.Providers, providers.Processes):
		r.add(
			"spec.providers",
			"has %s, which has no kubelets, and with placement node each arm has a node with one (want [%s])",
			providers.Processes,
			providers.Kind,
		)
	case s.Placement == "node" && !row.OnRole(false):
		r.add(
			"spec.placement",
			"%s runs on control planes, and with placement node the arms are workers (want cluster)",
			s.Subject,
		)
	}
}

// component checks that a name is that of a component, or is left out.
func (r *rules) component(path, name string) {
	all := component.Names(nil)
	if name != "" && !slices.Contains(all, name) {
		r.add(path, "%q is no component %s", name, oneOf(name, all))
	}
}

// program checks that the package of a source is in its module, and that it is the subject's program.
func (r *rules) program(path string, s Source) {
	row, known := component.Of(r.s.Spec.Subject)
	switch {
	case s.Package != s.Module && !strings.HasPrefix(s.Package, s.Module+"/"):
		r.add(path, "%q is not in the module %s (want %s/…)", s.Package, s.Module, s.Module)
	case known && !row.Builds(s.Package):
		r.add(
			path,
			"%q is not the program of the subject %s (want %s)",
			s.Package,
			row.Name,
			row.Package(),
		)
	}
}

// foreign refuses a package that belongs to the program of another component than the subject.
func (r *rules) foreign(path, pkg string) {
	name, ok := strings.CutPrefix(pkg, component.Commands)
	name, _, _ = strings.Cut(name, "/")
	if row, known := component.Of(name); ok && known && row.Name != r.s.Spec.Subject {
		r.add(
			path,
			"%q is a package of %s, and the subject is %s",
			pkg,
			row.Name,
			r.s.Spec.Subject,
		)
	}
}
