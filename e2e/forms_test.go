//go:build cluster

package e2e_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/e2e-framework/klient"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/kind"
	"github.com/kube-relapse/relapse/harness/match"
)

// The evidence that others take of a healthy cluster with their own tools.
var _ = Describe("Evidence of a healthy cluster", Ordered, ContinueOnFailure, Label("nightly"), func() {
	const auditPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived, ResponseStarted]\nrules: [{level: Metadata}]\n"
	var (
		dir, name, node, kubeconfig string
		c                           cluster.Cluster
	)

	BeforeAll(func(ctx SpecContext) {
		name, dir = "relapse-e2e-"+draw(), filepath.Join(scratch, "files-"+draw())
		Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
		top := cluster.Topology{Version: smoke.Version, Network: name, Base: smoke.Trials[0].Clusters[0].Topology.Base, Nodes: []cluster.NodeSpec{{
			Name: cluster.ControlPlane, Role: cluster.ControlPlane, Image: image,
			Args:     map[string]map[string]string{"kube-apiserver": {"audit-policy-file": "policy.yaml", "audit-log-path": "audit.log"}},
			OwnFiles: map[string]map[string]string{"kube-apiserver": {"policy.yaml": auditPolicy, "audit.log": ""}},
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
	}, NodeTimeout(15*time.Minute))

	// keep writes the output of a command on the node to a file.
	keep := func(ctx context.Context, file string, argv ...string) {
		GinkgoHelper()
		out, err := c.Nodes()[0].Abilities().Commands.Exec(ctx, nil, argv...)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
		Expect(os.WriteFile(file, out, 0o644)).To(Succeed())
	}
	get := func(ctx context.Context, component, path, file string) {
		GinkgoHelper()
		answer, err := c.Components(component)[0].Get(ctx, path)
		Expect(err).NotTo(HaveOccurred())
		defer answer.Close()
		b, err := io.ReadAll(answer)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
		Expect(os.WriteFile(file, b, 0o644)).To(Succeed())
	}
	kubectl := []string{"kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf"}

	DescribeTable("is read as what it is, and shows no incident", func(ctx SpecContext, take func(context.Context, string), as ...string) {
		at := filepath.Join(scratch, "evidence-"+draw())
		Expect(os.MkdirAll(at, 0o755)).To(Succeed())
		take(ctx, at)
		r := matched(ctx, at)
		for _, form := range as {
			Expect(r.Inputs).To(ContainElement(HaveField("As", MatchRegexp(form))), "what was read")
		}
	},
		Entry("kind export logs", SpecTimeout(5*time.Minute), func(ctx context.Context, at string) {
			cmd := osexec.CommandContext(ctx, "go", "run", "sigs.k8s.io/kind", "export", "logs", "--name", name, at)
			cmd.Dir = root
			out, err := cmd.CombinedOutput()
			if err != nil { // an assembled node image has no crictl, and the rest is exported without it
				Expect(string(out)).To(And(ContainSubstring("crictl images"), Not(ContainSubstring("journalctl"))))
			}
		}, `text of \d+ lines by .*kubelet`, `text of \d+ lines by .*containerd`),
		Entry("kubectl cluster-info dump", SpecTimeout(5*time.Minute), func(ctx context.Context, at string) {
			keep(ctx, filepath.Join(at, "said"), append(kubectl, "cluster-info", "dump", "--all-namespaces", "--output-directory", "/var/tmp/dump")...)
			keep(ctx, filepath.Join(at, "dump.tar"), "tar", "-C", "/var/tmp", "-cf", "-", "dump")
		}, `resources, [1-9]`, `text of \d+ lines`),
		Entry("kubectl cluster-info dump on one page", SpecTimeout(5*time.Minute), func(ctx context.Context, at string) {
			keep(ctx, filepath.Join(at, "dump.txt"), append(kubectl, "cluster-info", "dump", "--all-namespaces")...)
		}, `resources, [1-9]`),
		Entry("journalctl", SpecTimeout(5*time.Minute), func(ctx context.Context, at string) {
			for _, form := range []string{"short", "short-iso", "short-precise", "json", "json-pretty", "export", "cat"} {
				keep(ctx, filepath.Join(at, form, "journal"), "journalctl", "--no-pager", "--all", "--output="+form)
			}
		}, `^text of \d+ lines by .*containerd`, `^journal in the export form.* by .*containerd`),
		Entry("pprof and metrics", SpecTimeout(5*time.Minute), func(ctx context.Context, at string) {
			for _, of := range []string{"kubelet", "kube-apiserver", "kube-scheduler", "kube-controller-manager"} {
				get(ctx, of, "/debug/pprof/goroutine?debug=1", filepath.Join(at, of, "goroutines-1.txt"))
				get(ctx, of, "/debug/pprof/goroutine?debug=2", filepath.Join(at, of, "goroutines-2.txt"))
				get(ctx, of, "/debug/pprof/goroutine", filepath.Join(at, of, "goroutines.pb.gz"))
				get(ctx, of, "/debug/pprof/heap", filepath.Join(at, of, "heap.pb.gz"))
				get(ctx, of, "/debug/pprof/profile?seconds=2", filepath.Join(at, of, "cpu.pb.gz"))
				get(ctx, of, "/metrics", filepath.Join(at, of, "metrics.txt"))
			}
		}, `^goroutine dump \(debug=1\)`, `^goroutine dump \(debug=2\)`, "^goroutine profile", "^heap profile", "^CPU profile", "^Prometheus metrics"),
		Entry("a component that got SIGQUIT", SpecTimeout(5*time.Minute), func(ctx context.Context, at string) {
			Expect(c.Components("kube-scheduler")[0].Signal(ctx, syscall.SIGQUIT, cluster.Identity{})).To(Succeed())
			Eventually(ctx, func(ctx context.Context) string {
				keep(ctx, filepath.Join(at, "pods.tar"), "sh", "-c", "tar -C /var/log -cf - pods || [ $? = 1 ]") // logs grow
				b, err := os.ReadFile(filepath.Join(at, "pods.tar"))
				Expect(err).NotTo(HaveOccurred())
				return string(b)
			}).WithTimeout(time.Minute).WithPolling(5*time.Second).Should(And(ContainSubstring("SIGQUIT: quit"), MatchRegexp(`F gs +0x`)), "the dump up to the last register")
		}, `goroutine dump \(debug=2\) with \d\d+ goroutines, text of`),
	)

	It("is collected by the requests that are announced, and by no others", func(ctx SpecContext) {
		announced := relapse(ctx, dir, "collect", "--dry-run")
		Expect(announced.code).To(Equal(0), announced.said())
		at := filepath.Join(scratch, "collected-"+draw())
		collected := relapse(ctx, dir, "collect", "--kubeconfig", kubeconfig, "--out", at)
		Expect(collected.code).To(Equal(0), collected.said())
		var told, seen []string
		for line := range strings.Lines(string(content(filepath.Join(at, "requests.jsonl")))) {
			var one struct {
				Path  string
				Error string
			}
			Expect(json.Unmarshal([]byte(line), &one)).To(Succeed())
			Expect(one.Error).To(BeEmpty())
			told = append(told, one.Path)
		}
		Eventually(ctx, func(ctx context.Context) []string {
			out, err := c.Nodes()[0].Abilities().Commands.Exec(ctx, nil, "cat", c.Nodes()[0].Folder("kube-apiserver")+"/audit.log")
			Expect(err).NotTo(HaveOccurred())
			seen = nil
			for line := range strings.Lines(string(out)) {
				var one struct{ Verb, UserAgent, RequestURI string }
				Expect(json.Unmarshal([]byte(line), &one)).To(Succeed())
				if one.UserAgent == "relapse-collect" {
					Expect(one.Verb).To(BeElementOf("get", "list"))
					seen = append(seen, one.RequestURI)
				}
			}
			return seen
		}).WithTimeout(30*time.Second).Should(ConsistOf(told), "by the API server's audit log")
		for _, path := range told {
			Expect(announcedPaths(announced.out)).To(ContainElement(Satisfy(func(re *regexp.Regexp) bool { return re.MatchString(path) })), path)
		}
		r := matched(ctx, at)
		Expect(len(r.Unexplained.AsUsual)+len(r.Unexplained.Compared)).To(BeNumerically(">=", 2), "dumps that were compared with healthy processes")
		for _, component := range []string{"kubelet", "kube-apiserver"} {
			Expect(r.Inputs).To(ContainElement(And(HaveField("Path", ContainSubstring(component)), HaveField("As", MatchRegexp(`^goroutine dump \(debug=2\)`)))))
		}
	}, SpecTimeout(5*time.Minute))
})

// matched reads evidence. It requires that no incident is found, that everything can be read except systemd's
// journals, and that each unknown answer comes with a command that settles it.
func matched(ctx context.Context, at string) (r match.Result) {
	GinkgoHelper()
	out := relapse(ctx, at, "match", at, "--output", "json")
	Expect(out.code).To(BeElementOf(0, 3), out.said())
	Expect(json.Unmarshal([]byte(out.out), &r)).To(Succeed(), out.said())
	Expect(r.Problems).To(Or(BeEmpty(), HaveEach(HaveField("Path", HaveSuffix(".journal")))), "what can't be read but systemd's own journals, which journalctl reads")
	Expect(r.Incidents).NotTo(BeEmpty())
	for _, c := range r.Unexplained.Compared { // goroutines that have not waited for a minute come and go
		Expect(c.Unusual).To(HaveEach(HaveField("Minutes", 0)), "what %s has beyond healthy ones", c.Where)
	}
	for _, i := range r.Incidents {
		Expect(i.Word()).To(BeElementOf("not met", "unknown"), "%s: %s", i.Name, i.Why)
		if i.Word() == "unknown" {
			Expect(i.Settle).NotTo(BeEmpty(), i.Name)
		}
	}
	return r
}

// announcedPaths returns the paths that --dry-run lists. NODE, NAMESPACE and POD stand for any name.
func announcedPaths(out string) (all []*regexp.Regexp) {
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "GET" {
			continue
		}
		p := regexp.QuoteMeta(f[1])
		for _, part := range []string{"NODE", "NAMESPACE", "POD"} {
			p = strings.ReplaceAll(p, part, `[a-z0-9.-]+`)
		}
		all = append(all, regexp.MustCompile("^"+p+"$"))
	}
	return all
}
