package kind

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// Cut drops everything between the node and its peers, by rules in the node's own network. A process in the node
// removes the rules after atMost.
func (n *Node) Cut(
	ctx context.Context,
	name string,
	peers []cluster.Peer,
	atMost time.Duration,
) error {
	var ends []cutOff
	for _, p := range peers {
		ip, err := n.addressOf(ctx, p.Node)
		if err != nil {
			return fmt.Errorf("cutting node %s off: %w", n.name, err)
		}
		ends = append(ends, cutOff{ip, p.Port})
	}
	_, err := n.Exec(
		ctx,
		nil,
		"sh",
		"-ec",
		cutScript(cutChain(name), cutMark(name), ends, atMost),
	)
	return err
}

// Mend removes the rules of the Cut with that name.
func (n *Node) Mend(ctx context.Context, name string) error {
	_, err := n.Exec(ctx, nil, "sh", "-ec", mendScript(cutChain(name), cutMark(name)))
	return err
}

// connectWithin is how long opening a connection may take. Between two nodes of one host it takes less than a
// millisecond, and what is dropped never opens.
const connectWithin = 2 * time.Second

// Reaches reports whether the node can open a connection to a TCP port of another node.
func (n *Node) Reaches(ctx context.Context, other cluster.Node, port int) (bool, error) {
	ip, err := n.addressOf(ctx, other)
	if err != nil {
		return false, fmt.Errorf("connecting node %s to another: %w", n.name, err)
	}
	out, err := n.Look(ctx, nil, "sh", "-ec", reachScript(ip, port))
	if err != nil {
		return false, err
	}
	switch answer := strings.TrimSpace(string(out)); answer {
	case "open":
		return true, nil
	case "closed":
		return false, nil
	case "refused":
		return false, fmt.Errorf(
			"connecting node %s to port %d of %s: %w",
			n.name,
			port,
			other.Name(),
			syscall.ECONNREFUSED,
		)
	default:
		return false, fmt.Errorf(
			"connecting node %s to port %d of %s: it printed %q",
			n.name,
			port,
			other.Name(),
			answer,
		)
	}
}

// addressOf returns the address of another node of the same cluster, as the engine knows it.
func (n *Node) addressOf(ctx context.Context, other cluster.Node) (string, error) {
	if _, err := n.c.node(other.Name()); err != nil {
		return "", err
	}
	links := []link{{node: other.Name()}}
	if err := n.c.readdress(ctx, links); err != nil {
		return "", err
	}
	if links[0].ip == "" {
		return "", fmt.Errorf("node %s has no address: it is off", other.Name())
	}
	return links[0].ip, nil
}

// cutOff is the address of a peer, and its port; 0 for all of the peer and its pods.
type cutOff struct {
	ip   string
	port int
}

// cutChain returns the name of the iptables chain for a Cut. Removing the chain and the jumps to it removes all that
// Cut added, and nothing else. A chain's name may have 28 characters.
func cutChain(name string) string {
	return fmt.Sprintf("RELAPSE-%.8x", sha256.Sum256([]byte(name)))
}

// cutMark returns the path of a file in the node. While a Cut is in force, the file has the process group of the
// process that waits to undo it.
func cutMark(name string) string { return "/run/relapse-cut-" + cutChain(name) }

// cutScript returns a script that drops what passes between the node and others. Before that, it starts a process that
// waits to undo it, in the same way as pauseScript. The pods of a peer are known by the routes to it.
func cutScript(chain, mark string, ends []cutOff, atMost time.Duration) string {
	var rules strings.Builder
	for _, e := range ends {
		if e.port != 0 {
			fmt.Fprintf(
				&rules,
				`iptables --wait --append "$chain" --protocol tcp --destination %[1]s --dport %[2]d --jump DROP
iptables --wait --append "$chain" --protocol tcp --source %[1]s --sport %[2]d --jump DROP
`,
				e.ip,
				e.port,
			)
			continue
		}
		fmt.Fprintf(&rules, `routes=$(ip -4 route show via %[1]s)
for address in %[1]s $(echo "$routes" | cut -d ' ' -f 1); do
	iptables --wait --append "$chain" --destination "$address" --jump DROP
	iptables --wait --append "$chain" --source "$address" --jump DROP
done
`, e.ip)
	}
	return mendScript(
		chain,
		mark,
	) + fmt.Sprintf(
		`env --unset=%s setsid sh -c 'echo $$ >"$2.new"; mv "$2.new" "$2"
sleep "$1"
chain=$3
%srm -f "$2"' \
	sh %.3f "$mark" "$chain" </dev/null >/dev/null 2>&1 &
until [ -e "$mark" ]; do sleep 0.01; done
iptables --wait --new-chain "$chain"
%sfor hook in INPUT OUTPUT FORWARD; do iptables --wait --insert "$hook" 1 --jump "$chain"; done
`,
		execMark,
		removeChain,
		atMost.Seconds(),
		rules.String(),
	)
}

// mendScript returns a script that ends the waiting process and removes the chain, if they are there.
func mendScript(chain, mark string) string {
	return fmt.Sprintf("chain=%s\nmark=%s\n%s\n%s", chain, mark, forget, removeChain)
}

// removeChain removes the chain and all jumps to it. It fails if the chain is there afterwards.
const removeChain = `for hook in INPUT OUTPUT FORWARD; do
	while iptables --wait --delete "$hook" --jump "$chain" 2>/dev/null; do :; done
done
if iptables --wait --numeric --list "$chain" >/dev/null 2>&1; then
	iptables --wait --flush "$chain"
	iptables --wait --delete-chain "$chain"
fi
`

// reachScript returns a script that prints whether a connection to a port can be opened: open, closed if there was no
// answer, or refused if nobody listens there: then nothing was dropped. It fails for any other reason.
func reachScript(ip string, port int) string {
	return fmt.Sprintf(`code=0
said=$(LC_ALL=C timeout %g bash -c ': <>"/dev/tcp/$0/$1"' %s %d 2>&1) || code=$?
case "$code $said" in "0 "*) echo open ;; "124 "*) echo closed ;; *"Connection refused"*) echo refused ;;
*) echo "$said" >&2; exit "$code" ;; esac
`, connectWithin.Seconds(), ip, port)
}
