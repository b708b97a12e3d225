package processes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
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
		problems = append(problems,
			"system: "+runtime.GOOS+", wanted linux, whose processes end with the one that started them")
	} else if _, err := identify(os.Getpid()); err != nil {
		problems = append(problems, fmt.Sprintf("/proc: %v, wanted a /proc that shows processes", err))
	}
	if err := writable(p.dir); err != nil {
		problems = append(problems, fmt.Sprintf("folder of the clusters: %v, wanted one that can be written", err))
	}
	if _, err := freePorts(1); err != nil {
		problems = append(problems, fmt.Sprintf("ports: %v", err))
	}
	if len(problems) == 0 {
		return ctx.Err()
	}
	return &cluster.HostError{Problems: problems,
		Hint: "if it is the folder, set XDG_STATE_HOME to one that can be written; the provider kind needs none of this"}
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

// Prepare builds etcd, kwok if nodes are simulated, and for each Kubernetes version the components that aren't in
// n.Arms.
func (p *Provider) Prepare(ctx context.Context, n cluster.Needs) (map[string]string, error) {
	if n.Builder == nil {
		return nil, errors.New("preparing the components of control planes: nothing can be built here")
	}
	programs, err := n.Builder.BuildPrograms(ctx, component.EtcdModule, component.EtcdVersion, component.EtcdModule)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{"etcd": component.EtcdVersion,
		"controlPlane": strings.Join(n.Versions(), ", ") + ", built from source"}
	if slices.ContainsFunc(n.Topologies, func(t cluster.Topology) bool { return t.Simulated > 0 }) {
		built, err := n.Builder.BuildPrograms(ctx, kwokModule, kwokVersion, kwokPackage)
		if err != nil {
			return nil, err
		}
		maps.Copy(programs, built)
		versions[kwok] = kwokVersion
	}
	for _, version := range n.Versions() {
		all := maps.Clone(programs)
		for _, name := range component.Names(component.StaticPods) {
			if name == "etcd" || slices.Contains(n.Arms, name) {
				continue
			}
			// Programs are built one at a time: what one plan builds as an arm is then in the cache for another plan
			// that only runs it.
			built, err := n.Builder.BuildPrograms(ctx, component.KubernetesModule, version,
				component.KubernetesModule+"/cmd/"+name)
			if err != nil {
				return nil, err
			}
			maps.Copy(all, built)
		}
		p.mu.Lock()
		p.programs[version] = all
		p.mu.Unlock()
	}
	return versions, nil
}
