package processes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// Check checks whether processes can be started and told apart here, and whether the folder of the clusters can be
// written.
func (p *Provider) Check(ctx context.Context, _ cluster.Needs) error {
	var problems []string
	if runtime.GOOS != "linux" {
		problems = append(
			problems,
			"system: "+runtime.GOOS+", wanted linux, whose processes end with the one that started them",
		)
	} else if _, err := identify(os.Getpid()); err != nil {
		problems = append(
			problems,
			fmt.Sprintf("/proc: %v, wanted a /proc that shows processes", err),
		)
	}
	if err := writable(p.dir); err != nil {
		problems = append(
			problems,
			fmt.Sprintf("folder of the clusters: %v, wanted one that can be written", err),
		)
	}
	if _, err := exec.LookPath("sh"); err != nil {
		problems = append(
			problems,
			"shell: no sh on PATH, wanted one, which reads the components' logs",
		)
	}
	if _, err := freePorts(1); err != nil {
		problems = append(problems, fmt.Sprintf("ports: %v", err))
	}
	if len(problems) == 0 {
		return ctx.Err()
	}
	return &cluster.HostError{
		Problems: problems,
		Hint:     "if it is the folder, set XDG_STATE_HOME to one that can be written; the provider kind needs none of this",
	}
}

func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".check-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString("x")
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// Prepare gets etcd, kwok if nodes are simulated, and for each Kubernetes version its components: those that aren't in
// n.Arms.
func (p *Provider) Prepare(ctx context.Context, n cluster.Needs) (map[string]string, error) {
	if n.Builder == nil {
		return nil, errors.New("preparing the components of control planes: nothing can be built here")
	}
	versions := map[string]string{"controlPlane": strings.Join(n.Versions(), ", ")}
	if !slices.Contains(n.Arms, "etcd") {
		versions["etcd"] = component.EtcdVersion
	}
	if simulates(n) {
		versions[kwok] = kwokVersion
	}
	shared, err := buildAll(ctx, n.Builder, sharedPrograms(n))
	if err != nil {
		return nil, err
	}
	for _, version := range n.Versions() {
		all, err := buildAll(ctx, n.Builder, componentsOf(n, version))
		if err != nil {
			return nil, err
		}
		maps.Copy(all, shared)
		p.mu.Lock()
		p.programs[version] = all
		p.mu.Unlock()
	}
	return versions, nil
}

// Foresee returns the programs that Prepare builds.
func (p *Provider) Foresee(_ context.Context, n cluster.Needs) (cluster.Foreseen, error) {
	out := cluster.Foreseen{Programs: sharedPrograms(n)}
	for _, version := range n.Versions() {
		out.Programs = append(out.Programs, componentsOf(n, version)...)
	}
	return out, nil
}

func buildAll(
	ctx context.Context,
	b cluster.Builder,
	programs []cluster.Programs,
) (map[string]string, error) {
	out := map[string]string{}
	for _, x := range programs {
		built, err := b.BuildPrograms(ctx, x.Module, x.Version, x.Packages...)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, built)
	}
	return out, nil
}

func simulates(n cluster.Needs) bool {
	return slices.ContainsFunc(
		n.Topologies,
		func(t cluster.Topology) bool { return t.Simulated > 0 },
	)
}

// sharedPrograms returns the programs that run beside every Kubernetes version and that no arm brings.
func sharedPrograms(n cluster.Needs) (out []cluster.Programs) {
	if !slices.Contains(n.Arms, "etcd") {
		out = append(
			out,
			cluster.Programs{Module: component.EtcdModule, Version: component.EtcdVersion,
				Packages: []string{component.EtcdModule}},
		)
	}
	if simulates(n) {
		out = append(
			out,
			cluster.Programs{
				Module:   kwokModule,
				Version:  kwokVersion,
				Packages: []string{kwokPackage},
			},
		)
	}
	return out
}

// componentsOf returns the components of a control plane that no arm brings. Each is a build of its own: what one plan
// builds as an arm is then in the cache for another plan that only runs it.
func componentsOf(n cluster.Needs, version string) (out []cluster.Programs) {
	for _, name := range component.Names(component.StaticPods) {
		if row, _ := component.Of(name); row.Kubernetes && !slices.Contains(n.Arms, name) {
			out = append(
				out,
				cluster.Programs{Module: component.KubernetesModule, Version: version,
					Packages: []string{row.Package()}},
			)
		}
	}
	return out
}
