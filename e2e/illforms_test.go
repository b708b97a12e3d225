//go:build cluster

package e2e_test

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/kube-relapse/relapse/harness/match"
)

// The evidence that others take of an ill cluster with their own tools. The vulnerable arm of
// apiserver-goroutine-leak stays ill after its trial. It is a build of v1.36.3 without the fix, and reports the
// version v1.36.3. So where evidence names the version, the answer is only a suspicion and gives that reason. Stacks
// without a version show the incident.
var _ = Describe("Evidence of an ill cluster", Ordered, ContinueOnFailure, Label("nightly"), func() {
	const (
		leak     = "apiserver-goroutine-leak"
		leaks    = "registry.Store.DeleteCollection"
		decisive = "distributor-blocked-for-minutes"
		hasFix   = "but the fix is in v1.23.0 and later; this is v1.36.3"
	)
	var dir, ill, well string // kubeconfigs

	BeforeAll(func(ctx SpecContext) {
		_, err := osexec.LookPath("kubectl")
		Expect(err).NotTo(HaveOccurred(), "evidence is taken by kubectl: https://kubernetes.io/docs/tasks/tools")
		dir = filepath.Join(scratch, "ill-"+draw())
		Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
		ran := relapse(ctx, dir, "run", leak, "--pair", "modern", "--provider", "processes", "--set", "quiet=40s", "--retain", "--progress", "plain")
		of := kept(dir, ran)
		ill, well = of["vulnerable"], of["fixed"]
		Expect(ill).To(BeAnExistingFile())
		Expect(well).To(BeAnExistingFile())
	}, NodeTimeout(90*time.Minute))

	kubectl := func(ctx context.Context, kubeconfig, file string, args ...string) {
		GinkgoHelper()
		cmd := osexec.CommandContext(ctx, "kubectl", append([]string{"--kubeconfig", kubeconfig}, args...)...)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		Expect(err).NotTo(HaveOccurred(), errs.String())
		put(file, string(out))
	}
	raw := func(ctx context.Context, path, file string) {
		GinkgoHelper()
		kubectl(ctx, ill, file, "get", "--raw", path)
	}

	// crashed makes the ill API server print its goroutines and end, once. It returns the server's log as the
	// container runtime's files have it.
	var log string
	crashed := func(ctx context.Context) string {
		GinkgoHelper()
		if log != "" {
			return log
		}
		home := filepath.Dir(ill)
		var process struct{ PID int }
		Expect(json.Unmarshal(content(filepath.Join(home, "state", "kube-apiserver.json")), &process)).To(Succeed())
		Expect(process.PID).To(BeNumerically(">", 1), "the API server's process")
		Expect(syscall.Kill(process.PID, syscall.SIGQUIT)).To(Succeed())
		files, err := filepath.Glob(filepath.Join(home, "pods", "kube-system_kube-apiserver-*", "kube-apiserver", "0.log"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(1))
		Eventually(ctx, func() string { return string(content(files[0])) }).WithTimeout(time.Minute).WithPolling(time.Second).
			Should(And(ContainSubstring("SIGQUIT: quit"), MatchRegexp(`F gs +0x`)), "the dump up to the last register")
		log = string(content(files[0]))
		return log
	}
	// end returns the end of the log, from a little before the dump, without what the container runtime writes before
	// each line. Nothing in this part tells the version.
	end := func(ctx context.Context) []string {
		GinkgoHelper()
		lines := regexp.MustCompile(`(?m)^\S+ stderr F `).ReplaceAllString(crashed(ctx), "")
		at := strings.Index(lines, "SIGQUIT: quit")
		return strings.Split(strings.TrimSuffix(lines[strings.LastIndex(lines[:max(0, at-20_000)], "\n")+1:], "\n"), "\n")
	}

	// answer is the answer that match must give to a form of evidence, and its reason. Stacks also show what a
	// healthy process doesn't have.
	type answer struct {
		word, why string
		unusual   bool
	}
	met := func(why string) answer { return answer{"met", decisive + `.*` + why, true} }
	suspected := answer{"suspected", decisive + ".*" + regexp.QuoteMeta(hasFix), true}
	stateless := answer{"unknown", "no goroutine dump at debug=2 is there", true}
	const dump = `goroutine dump \(debug=2\) with \d\d\d+ goroutines, text of`
	DescribeTable("shows the incident as far as the form can, and no other", func(ctx SpecContext, want answer, as string, take func(context.Context, string)) {
		at := filepath.Join(dir, "evidence-"+draw())
		Expect(os.MkdirAll(at, 0o755)).To(Succeed())
		take(ctx, at)
		r := read(ctx, at)
		Expect(r.Problems).To(BeEmpty())
		Expect(r.Inputs).To(ContainElement(HaveField("As", MatchRegexp(as))), "what was read")
		for _, i := range r.Incidents {
			if i.Name == leak {
				Expect(i.Word()).To(Equal(want.word), i.Why)
				Expect(i.Why).To(MatchRegexp(want.why))
			} else {
				Expect(i.Word()).To(BeElementOf("not met", "unknown"), "%s: %s", i.Name, i.Why)
			}
		}
		if want.unusual {
			Expect(r.Unexplained.Compared).NotTo(BeEmpty())
			Expect(r.Unexplained.Compared[0].Component).To(Equal("kube-apiserver"))
			Expect(r.Unexplained.Compared[0].Unusual[0]).To(And(HaveField("At", HaveSuffix(leaks)), HaveField("Usual", 0), HaveField("Count", BeNumerically(">=", 10))))
		}
	},
		// These two forms have no goroutine states, so they can't tell a distributor that sends from one that is at
		// work.
		Entry("a goroutine profile by go tool pprof", SpecTimeout(5*time.Minute), stateless, "^goroutine profile with",
			func(ctx context.Context, at string) { pprof(ctx, ill, filepath.Join(at, "kube-apiserver.pb.gz")) }),
		Entry("goroutines at debug=1", SpecTimeout(5*time.Minute), stateless, `^goroutine dump \(debug=1\)`,
			func(ctx context.Context, at string) {
				raw(ctx, "/debug/pprof/goroutine?debug=1", filepath.Join(at, "kube-apiserver", "goroutines.txt"))
			}),
		// The goroutines have waited since before the trial's quiet time.
		Entry("goroutines at debug=2", SpecTimeout(5*time.Minute), met("no version is known|the version isn't known"), `^goroutine dump \(debug=2\)`,
			func(ctx context.Context, at string) {
				raw(ctx, "/debug/pprof/goroutine?debug=2", filepath.Join(at, "stacks.txt"))
			}),
		Entry("goroutines at debug=2, twice, without their ages", SpecTimeout(5*time.Minute), met("the version isn't known"), `^goroutine dump \(debug=2\)`,
			func(ctx context.Context, at string) {
				for i := range 2 {
					if i > 0 {
						time.Sleep(75 * time.Second) // two dumps must lie more than a minute apart, which nothing announces
					}
					file := filepath.Join(at, fmt.Sprintf("stacks-%d.txt", i))
					raw(ctx, "/debug/pprof/goroutine?debug=2", file)
					put(file, regexp.MustCompile(`(?m)^(goroutine \d+ \[[^\],]+), \d+ minutes`).ReplaceAllString(string(content(file)), "$1"))
				}
			}),
		// Metrics hold nothing that a sign asks for except the version, and v1.36.3 has the fix.
		Entry("metrics", SpecTimeout(5*time.Minute), answer{"not met", regexp.QuoteMeta(strings.TrimPrefix(hasFix, "but ")), false}, "^Prometheus metrics",
			func(ctx context.Context, at string) {
				raw(ctx, "/metrics", filepath.Join(at, "kube-apiserver", "metrics.txt"))
			}),
		Entry("goroutines and metrics", SpecTimeout(5*time.Minute), suspected, "^Prometheus metrics",
			func(ctx context.Context, at string) {
				raw(ctx, "/debug/pprof/goroutine?debug=2", filepath.Join(at, "kube-apiserver", "goroutines.txt"))
				raw(ctx, "/metrics", filepath.Join(at, "kube-apiserver", "metrics.txt"))
			}),
		// The API server is no pod here, so the dump has neither its log nor anything else about it.
		Entry("kubectl cluster-info dump", SpecTimeout(5*time.Minute), answer{"unknown", "nothing here is known to be of kube-apiserver", false}, "^resources, ",
			func(ctx context.Context, at string) {
				kubectl(ctx, ill, filepath.Join(at, "dump.txt"), "cluster-info", "dump", "--all-namespaces")
			}),
		Entry("relapse collect", SpecTimeout(5*time.Minute), suspected, `^goroutine dump \(debug=2\)`,
			func(ctx context.Context, at string) {
				collected := relapse(ctx, dir, "collect", "--kubeconfig", ill, "--out", filepath.Join(at, "collected"))
				Expect(collected.code).To(Equal(0), collected.said())
			}),
		// From here on the API server has crashed.
		Entry("the log of an API server that got SIGQUIT, as the node has it", SpecTimeout(5*time.Minute), suspected, dump,
			func(ctx context.Context, at string) { put(filepath.Join(at, "kube-apiserver", "0.log"), crashed(ctx)) }),
		Entry("the end of it, as kubectl logs prints it", SpecTimeout(5*time.Minute), met("the version isn't known"), dump,
			func(ctx context.Context, at string) {
				put(filepath.Join(at, "kube-apiserver.log"), strings.Join(end(ctx), "\n")+"\n")
			}),
		Entry("the same in must-gather", SpecTimeout(5*time.Minute), met("the version isn't known"), `goroutine dump \(debug=2\)`,
			func(ctx context.Context, at string) {
				put(filepath.Join(at, "must-gather.tar.gz"), mustGather(end(ctx)))
			}),
		Entry("the same in a support bundle of Harvester", SpecTimeout(5*time.Minute), met("the version isn't known"), `goroutine dump \(debug=2\)`,
			func(ctx context.Context, at string) {
				put(filepath.Join(at, "supportbundle.zip"), supportBundle(end(ctx)))
			}),
		Entry("the same in journald, short", SpecTimeout(5*time.Minute), met("the version isn't known"), `goroutine dump \(debug=2\)`,
			func(ctx context.Context, at string) { journal(ctx, end(ctx), filepath.Join(at, "journal"), "short") }),
		Entry("the same in journald, short-iso", SpecTimeout(5*time.Minute), met("the version isn't known"), `goroutine dump \(debug=2\)`,
			func(ctx context.Context, at string) {
				journal(ctx, end(ctx), filepath.Join(at, "journal"), "short-iso")
			}),
		Entry("the same in journald, json", SpecTimeout(5*time.Minute), met("the version isn't known"), `goroutine dump \(debug=2\)`,
			func(ctx context.Context, at string) { journal(ctx, end(ctx), filepath.Join(at, "journal"), "json") }),
		Entry("the same in journald, export", SpecTimeout(5*time.Minute), met("the version isn't known"), `^journal in the export form.*goroutine dump \(debug=2\)`,
			func(ctx context.Context, at string) { journal(ctx, end(ctx), filepath.Join(at, "journal"), "export") }),
		Entry("the same in journald, cat", SpecTimeout(5*time.Minute), met("the version isn't known"), `goroutine dump \(debug=2\)`,
			func(ctx context.Context, at string) {
				journal(ctx, end(ctx), filepath.Join(at, "kube-apiserver.log"), "cat")
			}),
	)

	It("doesn't show it of the fixed arm, which had the same fault", func(ctx SpecContext) {
		at := filepath.Join(dir, "evidence-"+draw(), "kube-apiserver")
		for _, form := range []string{"debug=1", "debug=2"} {
			kubectl(ctx, well, filepath.Join(at, form+".txt"), "get", "--raw", "/debug/pprof/goroutine?"+form)
		}
		r := matched(ctx, at)
		for _, i := range r.Incidents {
			if i.Name == leak {
				Expect(i.Word()).To(Equal("not met"), i.Why)
			}
		}
	}, SpecTimeout(5*time.Minute))
})

// read runs match on evidence and returns its result.
func read(ctx context.Context, at string) (r match.Result) {
	GinkgoHelper()
	out := relapse(ctx, at, "match", at, "--output", "json")
	Expect(out.code).To(BeElementOf(0, 1, 3, 5), out.said())
	Expect(json.Unmarshal([]byte(out.out), &r)).To(Succeed(), out.said())
	Expect(r.Incidents).NotTo(BeEmpty())
	return r
}

func put(file, text string) {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
	Expect(os.WriteFile(file, []byte(text), 0o644)).To(Succeed())
}

// pprof runs go tool pprof, which takes a goroutine profile. It goes through kubectl proxy, because go tool pprof has
// no client certificate.
func pprof(ctx context.Context, kubeconfig, file string) {
	GinkgoHelper()
	proxy := osexec.CommandContext(ctx, "kubectl", "--kubeconfig", kubeconfig, "proxy", "--port", "0")
	says, err := proxy.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(proxy.Start()).To(Succeed())
	defer func() {
		Expect(proxy.Process.Kill()).To(Succeed())
		_ = proxy.Wait()
	}()
	line, err := bufio.NewReader(says).ReadString('\n')
	Expect(err).NotTo(HaveOccurred())
	at := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(line)
	Expect(at).NotTo(BeEmpty(), line)
	cmd := osexec.CommandContext(ctx, "go", "tool", "pprof", "-proto", "-output", file, "http://"+at+"/debug/pprof/goroutine")
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+GinkgoT().TempDir())
	said, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(said))
}

// stamped puts a time before each line, as the API does if it is asked for time stamps.
func stamped(lines []string) string {
	var b strings.Builder
	for i, l := range lines {
		b.WriteString(time.Now().Add(time.Duration(i)*time.Microsecond).UTC().Format("2006-01-02T15:04:05.000000000Z") + " " + l + "\n")
	}
	return b.String()
}

// mustGather packs a log as oc adm inspect does by its documentation:
// namespaces/NAMESPACE/pods/POD/CONTAINER/CONTAINER/logs/previous.log.
func mustGather(lines []string) string {
	GinkgoHelper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	text := stamped(lines)
	const pod = "must-gather/namespaces/openshift-kube-apiserver/pods/kube-apiserver-node1"
	Expect(w.WriteHeader(&tar.Header{Name: pod + "/kube-apiserver/kube-apiserver/logs/previous.log", Typeflag: tar.TypeReg, Mode: 0o644,
		Size: int64(len(text)), ModTime: time.Now()})).To(Succeed())
	_, err := w.Write([]byte(text))
	Expect(err).NotTo(HaveOccurred())
	Expect(w.Close()).To(Succeed())
	Expect(z.Close()).To(Succeed())
	return b.String()
}

// supportBundle packs a log as Harvester's support bundles do by their documentation:
// logs/NAMESPACE/POD/CONTAINER.log in a zip.
func supportBundle(lines []string) string {
	GinkgoHelper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("supportbundle_0c2ec8e9/logs/kube-system/kube-apiserver-node1/kube-apiserver.log")
	Expect(err).NotTo(HaveOccurred())
	_, err = f.Write([]byte(stamped(lines)))
	Expect(err).NotTo(HaveOccurred())
	Expect(w.Close()).To(Succeed())
	return b.String()
}

// journal starts a separate journald, makes it log lines as kube-apiserver's, and has journalctl print them in a
// form.
func journal(ctx context.Context, lines []string, file, form string) {
	GinkgoHelper()
	const daemon = "/usr/lib/systemd/systemd-journald"
	if _, err := os.Stat(daemon); err != nil || os.Geteuid() != 0 {
		Skip("this host has no journald that can be started: it takes root and " + daemon)
	}
	machine := strings.TrimSpace(string(content("/etc/machine-id")))
	name := "relapse" + draw()
	settings, at := "/run/systemd/journald@"+name+".conf.d", "/run/systemd/journal."+name
	put(filepath.Join(settings, "all.conf"), "[Journal]\nRateLimitIntervalSec=0\nStorage=volatile\n")
	cmd := osexec.CommandContext(ctx, daemon, name)
	Expect(cmd.Start()).To(Succeed())
	defer func() {
		Expect(cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
		_ = cmd.Wait()
		for _, left := range []string{settings, at, "/run/log/journal/" + machine + "." + name} {
			Expect(os.RemoveAll(left)).To(Succeed())
		}
	}()
	var to net.Conn
	Eventually(ctx, func() (err error) {
		to, err = net.Dial("unix", at+"/stdout")
		return err
	}).WithTimeout(10 * time.Second).Should(Succeed())
	_, err := to.Write([]byte("kube-apiserver\n\n6\n0\n0\n0\n0\n" + strings.Join(lines, "\n") + "\n"))
	Expect(err).NotTo(HaveOccurred())
	Expect(to.Close()).To(Succeed())
	Eventually(ctx, func() int {
		out, err := osexec.CommandContext(ctx, "journalctl", "--namespace", name, "--no-pager", "--all", "--output", form).Output()
		Expect(err).NotTo(HaveOccurred())
		put(file, string(out))
		return strings.Count(string(out), "goroutine ")
	}).WithTimeout(time.Minute).WithPolling(time.Second).Should(Equal(strings.Count(strings.Join(lines, "\n"), "goroutine ")))
}
