//go:build cluster

package kind_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/kind"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// TestClusterPower cuts the power of a worker and gives it back from what could be another process: the engine leaves
// it off, and it comes back with its data, its address and the engine's policy as it was.
func TestClusterPower(t *testing.T) {
	const name = "relapse-power"
	p, dir := newProvider(t)
	topo := topology(t, name)
	topo.Nodes = topo.Nodes[:2]
	clustertest.ProviderConformance(t, p, name, topo, func(t *testing.T, c cluster.Cluster) {
		ready(t, c)
		n := c.Nodes()[1]
		inspect := func(format string) string {
			t.Helper()
			out, err := exec.CommandContext(t.Context(), "docker", "inspect", "--type", "container", "--format", format,
				n.Name()).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			return strings.TrimSpace(string(out))
		}
		const (
			policy  = "{{.HostConfig.RestartPolicy.Name}}:{{.HostConfig.RestartPolicy.MaximumRetryCount}}"
			address = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
			ended   = "{{.State.Running}} {{.State.ExitCode}} {{.RestartCount}}"
		)
		before := inspect(policy + " " + address)
		run(t, n, "sh", "-c", "echo kept >/var/lib/kubelet/power; echo kept >/etc/power")
		if err := n.Abilities().Power.PowerOff(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := inspect(ended); got != "false 137 0" {
			t.Errorf("off, the container is %s; want it killed and not started again", got)
		}
		if got := inspect(policy); got != "no:0" {
			t.Errorf("off, the engine's policy is %s: its own restart would start the node", got)
		}

		other, err := kind.New(kind.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		again, err := other.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		back := again.Nodes()[1].Abilities().Power
		if err := back.PowerOn(t.Context()); err != nil {
			t.Fatal(err)
		}
		ready(t, c)
		if got := inspect(policy + " " + address); got != before {
			t.Errorf("on again, policy and address are %s; they were %s", got, before)
		}
		for _, file := range []string{"/var/lib/kubelet/power", "/etc/power"} {
			if got := run(t, n, "cat", file); got != "kept" {
				t.Errorf("%s has %q after the loss of power", file, got)
			}
		}
		// A cluster is removed with a node that is off: ProviderConformance looks that nothing is left.
		if err := n.Abilities().Power.PowerOff(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
