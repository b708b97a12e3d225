package kind

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asPartitioned makes the test binary run partitioned, in a network of its own.
const asPartitioned = "RELAPSE_TEST_PARTITIONED"

// The scripts of a node, in a network that only this test's process has: what they cut off is not reached any more,
// what they leave is, and mending or the time limit removes all that was added and nothing else.
func TestCutScripts(t *testing.T) {
	if os.Getenv(asPartitioned) != "" {
		partitioned(t)
		return
	}
	if out, err := exec.Command("unshare", "--map-root-user", "--net", "iptables", "--list").CombinedOutput(); err != nil {
		t.Skipf("no network of its own can be had, or it has no iptables: %v: %s", err, out)
	}
	cmd := exec.Command("unshare", "--map-root-user", "--net", os.Args[0], "-test.run=^TestCutScripts$", "-test.v")
	cmd.Env = append(os.Environ(), asPartitioned+"=yes")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
}

// The addresses of the network: a peer and another node, each with two ports.
const (
	peerIP, otherIP   = "198.51.100.2", "198.51.100.3"
	cutPort, keptPort = 7001, 7002
)

func partitioned(t *testing.T) {
	sh := func(script string) string {
		t.Helper()
		cmd := exec.Command("sh", "-ec", script)
		cmd.Env = append(os.Environ(), execMark+"=this")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%v: %s", script, err, out)
		}
		return string(out)
	}
	// All addresses are this namespace's own.
	sh(`ip link set lo up
for a in ` + peerIP + ` ` + otherIP + `; do ip address add "$a/32" dev lo; done`)
	for _, ip := range []string{peerIP, otherIP} {
		for _, port := range []int{cutPort, keptPort} {
			l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", ip, port))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
	}
	sh("iptables --wait --append OUTPUT --destination 192.0.2.9 --jump DROP") // somebody else's
	before := sh("iptables --wait --list-rules")
	mark := filepath.Join(t.TempDir(), "mark")
	chain := cutChain("run/split")
	reach := func(when, ip string, port int, want string) {
		t.Helper()
		if got := strings.TrimSpace(sh(reachScript(ip, port))); got != want {
			t.Errorf("%s, port %d of %s is %s, want %s", when, port, ip, got, want)
		}
	}
	unchanged := func(when string) {
		t.Helper()
		if after := sh("iptables --wait --list-rules"); after != before {
			t.Errorf("%s the rules are\n%swant\n%s", when, after, before)
		}
	}
	reach("at first", peerIP, cutPort, "open")
	sh(mendScript(chain, mark))
	unchanged("after mending what was never cut,")
	reach("where nobody listens", peerIP, 7003, "refused")

	all := []cutOff{{peerIP, 0}}
	for range 2 { // the second takes the place of the first
		sh(cutScript(chain, mark, all, time.Hour))
	}
	reach("cut off", peerIP, cutPort, "closed")
	reach("cut off", peerIP, keptPort, "closed")
	reach("cut off", otherIP, cutPort, "open")
	if rules := sh("iptables --wait --list-rules " + chain); strings.Count(rules, "--jump DROP")+strings.Count(rules, "-j DROP") != 2 {
		t.Errorf("the rules are\n%s", rules)
	}
	sh(mendScript(chain, mark))
	reach("mended", peerIP, cutPort, "open")
	unchanged("mended,")

	sh(cutScript(chain, mark, []cutOff{{peerIP, cutPort}}, time.Hour))
	reach("with a port cut off", peerIP, cutPort, "closed")
	reach("with a port cut off", peerIP, keptPort, "open")
	sh(mendScript(chain, mark))
	unchanged("with the port mended,")

	const limit = 10 * time.Second // a busy machine looks while it is cut off, too
	began := time.Now()
	sh(cutScript(chain, mark, all, limit))
	reach("cut off for a while", peerIP, cutPort, "closed")
	for strings.TrimSpace(sh(reachScript(peerIP, cutPort))) != "open" {
		if time.Since(began) > limit+time.Minute {
			t.Fatal("its time was not kept")
		}
	}
	if took := time.Since(began); took < limit {
		t.Errorf("it was over after %s", took)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // the process that waited ends
		if _, err := os.Stat(mark); os.IsNotExist(err) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a mark is left")
		}
	}
	unchanged("with the time over,")
	cutWithPods(t, sh, chain, mark)
	unchanged("with the pods mended,")
}

// cutWithPods tests that the pods of a peer, to which there is a route, are cut off with it.
func cutWithPods(t *testing.T, sh func(string) string, chain, mark string) {
	t.Helper()
	const next = "198.51.100.77"
	sh("ip route add 203.0.113.0/24 via " + next + " dev lo onlink")
	sh(cutScript(chain, mark, []cutOff{{next, 0}}, time.Hour))
	rules := sh("iptables --wait --list-rules " + chain)
	for _, want := range []string{"-d " + next + "/32 -j DROP", "-s " + next + "/32 -j DROP", "-d 203.0.113.0/24 -j DROP", "-s 203.0.113.0/24 -j DROP"} {
		if !strings.Contains(rules, want) {
			t.Errorf("the rules lack %s:\n%s", want, rules)
		}
	}
	sh(mendScript(chain, mark))
}

func TestCutsHaveNamesOfTheirOwn(t *testing.T) {
	one, other := cutChain("relapse-1/split"), cutChain("relapse-1/split2")
	if one == other || len(one) > 28 || cutMark("relapse-1/split") == cutMark("relapse-1/split2") {
		t.Errorf("%s and %s", one, other)
	}
}
