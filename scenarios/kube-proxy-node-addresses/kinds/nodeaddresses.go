// Package kinds has the kinds of the scenario kube-proxy-node-addresses: the fault that gives a node many addresses,
// the collector that counts them, and checks of what a sync costs and of how that grows with their number.
package kinds

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/faults"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "nodeAddresses",
		Doc: "Nodes with many more IPv4 addresses, as if each service had an address on a local interface of the " +
			"node.\n\n" +
			"Each address is a /32 of 198.19.0.0/16, a range that is reserved for measurements. The addresses are on " +
			"a separate bridge without ports, so nothing is sent anywhere. The harness sees the addresses come and " +
			"go in the node's list of addresses. If the harness doesn't remove the bridge, a timer in the node does " +
			"after the time limit: the fault phase's deadline plus 2m. The addresses disappear with the bridge.",
		Example: "name: addresses\nkind: nodeAddresses\ntarget: {mode: all, selector: {component: kube-proxy}}\n" +
			"spec: {count: 1000}\n",
		Tested: `{"count":7}`,
		New:    func() fault.Fault { return &NodeAddresses{} },
	})
}

// NodeAddresses gives nodes more addresses.
type NodeAddresses struct {
	Count int `json:"count" jsonschema:"number of addresses: 1 to 4000"`
}

// mostAddresses is the most addresses that a node was seen to bear.
const mostAddresses = 4000

// addressLink is the name of the bridge, and of the unit that removes it.
const addressLink = "relapse-addr"

// addAddresses makes the bridge with its addresses. An existing bridge is left alone, and the timer begins anew.
const addAddresses = `link=$1 count=$2 seconds=$3
systemctl stop "$link.timer" 2>/dev/null || true
systemd-run --quiet --collect --unit="$link" --on-active="$seconds" --timer-property=AccuracySec=1s ip link delete dev "$link"
ip link show dev "$link" >/dev/null 2>&1 || ip link add name "$link" type bridge
i=0
while [ "$i" -lt "$count" ]; do
	echo "address replace 198.19.$((i / 250)).$((i % 250 + 1))/32 dev $link"
	i=$((i + 1))
done | ip -batch -
ip link set dev "$link" up`

// dropAddresses removes the bridge. Another fault of this kind, or the timer, may do so at the same time.
const dropAddresses = `link=$1
systemctl stop "$link.timer" 2>/dev/null || true
ip link delete dev "$link" 2>/dev/null || ! ip link show dev "$link" 2>/dev/null`

// Needs returns what the fault requires: commands in the nodes.
func (*NodeAddresses) Needs() fault.Needs { return fault.Needs{Exec: true} }

// Validate refuses less than one address, and more than a node was seen to bear.
func (f *NodeAddresses) Validate() error {
	if f.Count < 1 || f.Count > mostAddresses {
		return fmt.Errorf("count is %d (want 1 to %d)", f.Count, mostAddresses)
	}
	return nil
}

// Inject adds the addresses on every node and returns once each lists all of them.
func (f *NodeAddresses) Inject(ctx context.Context, t fault.Target) error {
	return f.runOnNodes(ctx, t, f.Count, event.FaultSeen, addAddresses, strconv.Itoa(f.Count),
		fmt.Sprintf("%.0fs", t.Expires.Seconds()))
}

// Recover removes the addresses and returns once no node lists any of them.
func (f *NodeAddresses) Recover(ctx context.Context, t fault.Target) error {
	return f.runOnNodes(ctx, t, 0, event.FaultGone, dropAddresses)
}

// runOnNodes runs a script on all nodes of the target at once, and waits until each lists want of the fault's
// addresses.
func (f *NodeAddresses) runOnNodes(
	ctx context.Context,
	t fault.Target,
	want int,
	typ, script string,
	args ...string,
) error {
	return faults.Each(t.Nodes, func(n cluster.Node) error {
		x, err := cluster.Commands(n)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		argv := append([]string{"sh", "-ec", script, "sh", addressLink}, args...)
		if _, err := x.Exec(ctx, nil, argv...); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		has := func(ctx context.Context) (int, error) {
			out, err := x.Look(ctx, nil, "ip", "-4", "-oneline", "address", "show")
			return strings.Count(string(out), ": "+addressLink+" "), err
		}
		if _, err := faults.ProbeUntil(ctx, faults.SeenWithin, has, func(n int) bool { return n == want }); err != nil {
			return fmt.Errorf("%s: node %s doesn't list %d addresses more: %w", t.Name, n.Name(), want, err)
		}
		faults.Emit(t, typ, n, "the node has %d addresses more", want)
		return nil
	})
}
