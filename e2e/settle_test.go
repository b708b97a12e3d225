//go:build cluster

package e2e_test

import (
	"context"
	"maps"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/e2e-framework/klient"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/kind"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// notThere are the components that no kind cluster has as kubeadm lays it out, and what is run in their place. "" is
// nothing: the unit test of match looks at their commands.
var notThere = map[string]string{
	"cloud-controller-manager": "kube-controller-manager", // a program with the same server
	"fleet-agent":              "",
	"listener":                 "",
}

// ports are those of the components in the place of which others are asked.
var ports = strings.NewReplacer("10258", "10257", "cloud-controller-manager", "kube-controller-manager")

// forms are those in which match has to read a file, by the end of its name.
var forms = map[string]string{
	".txt": `^goroutine dump \(debug=2\)`, ".log": `^text of \d+ lines`, ".json": `^text of \d+ lines`,
	".metrics": "^Prometheus metrics", ".before": "^Prometheus metrics", ".after": "^Prometheus metrics",
	".cpu.pb.gz": "^CPU profile", "kube-proxy.pb.gz": "^heap profile",
}

// outputFile matches a file that a command writes.
var outputFile = regexp.MustCompile(`> *([a-z][^\s;]*)`)

// What match tells people to run has to work where kubeadm made the cluster, and give evidence that match reads.
var _ = Describe("The commands that settle an answer", Ordered, ContinueOnFailure, Label("nightly"), func() {
	var (
		dir, name, node, kubeconfig string
		c                           cluster.Cluster
	)
	sh := func(ctx context.Context, at, command string) (string, error) {
		cmd := osexec.CommandContext(ctx, "bash", "-c", command)
		cmd.Dir, cmd.Env = at, append(os.Environ(), "KUBECONFIG="+kubeconfig)
		cmd.WaitDelay = 10 * time.Second
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	identity := func(ctx context.Context, of string) cluster.Identity {
		GinkgoHelper()
		id, err := c.Components(of)[0].Identity(ctx, false)
		Expect(err).NotTo(HaveOccurred())
		return id
	}

	BeforeAll(func(ctx SpecContext) {
		name, dir = "relapse-e2e-"+draw(), filepath.Join(scratch, "settle-"+draw())
		Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
		top := cluster.Topology{Version: smoke.Version, Network: name, Base: smoke.Trials[0].Clusters[0].Topology.Base, Nodes: []cluster.NodeSpec{{
			Name: cluster.ControlPlane, Role: cluster.ControlPlane, Image: image,
			Args: map[string]map[string]string{"kube-proxy": {"enableProfiling": "true"}},
		}}}
		prov, err := kind.New(kind.Options{Dir: dir, Events: events})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(prov.Delete(ctx, name)).To(Succeed()) }, NodeTimeout(2*time.Minute))
		c, err = prov.Create(ctx, name, top)
		Expect(err).NotTo(HaveOccurred(), "creating the cluster")
		node, kubeconfig = c.Nodes()[0].Name(), prov.KubeconfigPath(name)
		client, err := klient.New(c.RESTConfig())
		Expect(err).NotTo(HaveOccurred())
		Expect(cluster.WaitReady(ctx, client, []string{node}, 3*time.Minute)).To(Succeed())
		// Only a container that was started anew has a log from before.
		for _, of := range []string{"kube-scheduler", "kube-controller-manager", "kube-apiserver"} {
			before := identity(ctx, of)
			Expect(c.Components(of)[0].Signal(ctx, syscall.SIGTERM, before)).To(Succeed())
			Eventually(ctx, func(g Gomega, ctx context.Context) {
				now, err := c.Components(of)[0].Identity(ctx, false)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(now.PID).NotTo(Or(BeZero(), Equal(before.PID)))
			}).WithTimeout(3 * time.Minute).WithPolling(2 * time.Second).Should(Succeed())
		}
		Expect(cluster.WaitReady(ctx, client, []string{node}, 3*time.Minute)).To(Succeed())
	}, NodeTimeout(20*time.Minute))

	// run runs one command in a folder of its own, and hands what it wrote to match.
	run := func(ctx context.Context, s *scenario.Scenario, command string) {
		GinkgoHelper()
		of := s.Spec.Subject
		if instead, absent := notThere[of]; absent {
			of, command = instead, ports.Replace(command)
		}
		at := filepath.Join(scratch, "settled-"+draw())
		Expect(os.MkdirAll(at, 0o755)).To(Succeed())
		pod, err := sh(ctx, at, "kubectl -n kube-system get pods -o name | sed 's,^pod/,,' | grep -m1 '^"+of+"-' || true")
		Expect(err).NotTo(HaveOccurred(), pod)
		command = strings.NewReplacer("NODE", node, "POD", strings.TrimSpace(pod)).Replace(command)
		wants := outputFile.FindAllStringSubmatch(command, -1)
		before := identity(ctx, of)
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			var said string
			var err error
			if text, file, onNode := strings.Cut(command, " > "); onNode && strings.HasPrefix(command, "journalctl") {
				var out []byte
				out, err = c.Nodes()[0].Abilities().Commands.Exec(ctx, nil, "sh", "-c", text)
				g.Expect(os.WriteFile(filepath.Join(at, file), out, 0o644)).To(Succeed())
			} else if said, err = sh(ctx, at, command); len(wants) == 0 {
				g.Expect(os.WriteFile(filepath.Join(at, "said.yaml"), []byte(said), 0o644)).To(Succeed())
			}
			g.Expect(err).NotTo(HaveOccurred(), said)
			files, err := os.ReadDir(at)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(files).NotTo(BeEmpty(), "the files that it wrote")
			for _, f := range files {
				info, err := f.Info()
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(info.Size()).To(BeNumerically(">", 0), "%s is empty; the command said: %s", f.Name(), said)
			}
		}).WithTimeout(5 * time.Minute).WithPolling(10 * time.Second).Should(Succeed()) // a component that has just started may refuse
		Expect(identity(ctx, of).Same(before)).To(BeTrue(), "the process is another one, so that an incident would be over")
		for _, in := range matched(ctx, at).Inputs {
			for suffix, form := range forms {
				if strings.HasSuffix(in.Path, suffix) {
					Expect(in.As).To(MatchRegexp(form), in.Path)
				}
			}
		}
	}

	var entries []TableEntry
	known, err := filepath.Glob("../scenarios/*/" + scenario.FileName)
	if err != nil || len(known) == 0 {
		panic("there is no scenario")
	}
	for _, f := range known {
		s, err := scenario.Load(f)
		if err != nil {
			panic(err)
		}
		if instead, absent := notThere[s.Spec.Subject]; s.Spec.Match == nil || absent && instead == "" {
			continue
		}
		commands := map[string]bool{}
		for _, sign := range s.Spec.Match.Signs {
			commands[sign.Settle] = true
		}
		for _, command := range slices.Sorted(maps.Keys(commands)) {
			entries = append(entries, Entry(s.Metadata.Name+": "+command, SpecTimeout(12*time.Minute),
				func(ctx SpecContext) { run(ctx, s, command) }))
		}
	}
	DescribeTable("works and is read", func(ctx SpecContext, take func(SpecContext)) { take(ctx) }, entries)
})
