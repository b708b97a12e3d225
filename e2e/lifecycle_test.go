//go:build cluster

package e2e_test

import (
	"context"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"github.com/kube-relapse/relapse/harness/verdict"
)

// How long the specs wait: for a phase of a run, for a process to end after a signal, and for the host to be as
// before the run.
const (
	phaseTime = 12 * time.Minute
	endTime   = 6 * time.Minute
	backTime  = 2 * time.Minute
)

// The lines of a run that specs wait for.
const (
	saysCreating = `==> cluster: creating the cluster (relapse-[0-9a-f]+)`
	saysFlooded  = `fault \[(vulnerable|fixed)\]: flood: the runtime reports [0-9]+ more pods`
	saysHealing  = `phase recovery`
)

var clusterLine = regexp.MustCompile(saysCreating)

// site stands for a user's machine, with separate state, runs and a kubeconfig that nobody may touch. Only the cache
// and the container engine are the host's.
type site struct {
	dir, state, runs, kubeconfig, mark string
	touched                            os.FileInfo
	before                             host
	clusters                           []string // the clusters of the runs that were started here
	sessions                           []*gexec.Session
}

// sentinel is the text of a kubeconfig that makes everyone fail who reads it.
const sentinel = "this is the user's own file: {{{ not YAML\n"

func newSite(ctx SpecContext) *site {
	GinkgoHelper()
	s := &site{dir: filepath.Join(scratch, "site-"+draw()), mark: "RELAPSE_E2E_MARK=" + draw()}
	s.state, s.runs, s.kubeconfig = filepath.Join(s.dir, "state"), filepath.Join(s.dir, "runs"), filepath.Join(s.dir, "kubeconfig")
	Expect(os.MkdirAll(s.dir, 0o755)).To(Succeed())
	Expect(os.WriteFile(s.kubeconfig, []byte(sentinel), 0o600)).To(Succeed())
	old := time.Now().Add(-24 * time.Hour).Truncate(time.Second)
	Expect(os.Chtimes(s.kubeconfig, old, old)).To(Succeed())
	var err error
	s.touched, err = os.Stat(s.kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	s.before, err = look(ctx, func(string) bool { return false })
	Expect(err).NotTo(HaveOccurred())
	// What a spec leaves when it fails is removed with the command that users have for that, so that the next spec
	// starts clean.
	DeferCleanup(func(ctx SpecContext) {
		for _, session := range s.sessions {
			if session.ExitCode() == -1 { // the spec failed before the session had ended
				session.Kill().Wait(endTime)
			}
		}
		Expect(s.relapse(ctx, "clean", "--all").code).To(Equal(0))
	}, NodeTimeout(20*time.Minute))
	return s
}

func (s *site) env() []string {
	return append(os.Environ(), "XDG_STATE_HOME="+s.state, "KUBECONFIG="+s.kubeconfig, s.mark)
}

// start starts the program in a separate process group, as a shell would.
func (s *site) start(args ...string) *gexec.Session {
	GinkgoHelper()
	cmd := osexec.Command(program, append([]string{"--root", root}, args...)...)
	cmd.Dir, cmd.Env = s.dir, s.env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	s.sessions = append(s.sessions, session)
	return session
}

// run starts a trial of the smoke pair. It returns the cluster's name once the cluster is being created.
func (s *site) run(ctx context.Context, args ...string) (session *gexec.Session, cluster string) {
	GinkgoHelper()
	session = s.start(append([]string{"run", "pleg-deadlock", "--pair", "smoke", "--runs", s.runs, "--progress", "plain",
		"--set", "phases.baseline.atLeast=1s"}, args...)...)
	s.says(ctx, session, saysCreating)
	found := clusterLine.FindSubmatch(session.Err.Contents())
	Expect(found).To(HaveLen(2))
	s.clusters = append(s.clusters, string(found[1]))
	return session, string(found[1])
}

// says waits for a line that matches line, and gives up at once if the run ends without one.
func (s *site) says(ctx context.Context, session *gexec.Session, line string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		if session.ExitCode() != -1 {
			StopTrying("the run ended before it said " + line).Now()
		}
		g.Expect(string(session.Err.Contents())).To(MatchRegexp(line))
	}).WithTimeout(phaseTime).WithPolling(100 * time.Millisecond).Should(Succeed())
}

// interrupt does what Ctrl-C does: the terminal sends SIGINT to the whole process group.
func interrupt(session *gexec.Session) {
	GinkgoHelper()
	Expect(syscall.Kill(-session.Command.Process.Pid, syscall.SIGINT)).To(Succeed())
}

// relapse runs another command of the program to its end on this site.
func (s *site) relapse(ctx context.Context, args ...string) result {
	GinkgoHelper()
	session := s.start(args...)
	Eventually(ctx, session).WithTimeout(endTime).Should(gexec.Exit())
	return result{session.ExitCode(), string(session.Out.Contents()), string(session.Err.Contents())}
}

// containers lists the containers of a cluster.
func containers(ctx context.Context, cluster string) ([]string, error) {
	return docker(ctx, "ps", "--all", "--filter", "label="+kindLabel+"="+cluster, "--format", "{{.Names}}")
}

// asBefore asserts that this site's runs left nothing anywhere, and that the user's kubeconfig was not touched.
func (s *site) asBefore(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		now, err := look(ctx, func(cluster string) bool { return slices.Contains(s.clusters, cluster) })
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(now.more(s.before)).To(BeEmpty())
		g.Expect(offspring(s.mark)).To(BeEmpty())
	}).WithTimeout(backTime).WithPolling(time.Second).Should(Succeed())
	Expect(names(tree(s.state))).To(BeEmpty(), "the state directory")
	Expect(names(tree(s.runs))).To(BeEmpty(), "half-written evidence")
	Expect(string(content(s.kubeconfig))).To(Equal(sentinel))
	now, err := os.Stat(s.kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	Expect(now.ModTime()).To(Equal(s.touched.ModTime()), "the user's kubeconfig was written")
	Expect(os.SameFile(now, s.touched)).To(BeTrue(), "the user's kubeconfig was replaced")
}

var _ = Describe("A run's life", func() {
	var s *site
	BeforeEach(func(ctx SpecContext) { s = newSite(ctx) }, NodeTimeout(3*time.Minute))

	It("is undone by Ctrl-C while its cluster is being created", func(ctx SpecContext) {
		session, cluster := s.run(ctx)
		Eventually(ctx, func() ([]string, error) { return containers(ctx, cluster) }).WithTimeout(3 * time.Minute).ShouldNot(BeEmpty())
		interrupt(session)
		Eventually(ctx, session).WithTimeout(endTime).Should(gexec.Exit(130))
		Expect(session.Err).To(gbytes.Say("error: interrupted"))
		s.asBefore(ctx)
	}, SpecTimeout(30*time.Minute))

	It("is undone by Ctrl-C while the fault is in force, and a second Ctrl-C changes nothing", func(ctx SpecContext) {
		session, cluster := s.run(ctx)
		s.says(ctx, session, saysFlooded)
		interrupt(session)
		interrupt(session)
		Eventually(ctx, session).WithTimeout(endTime).Should(gexec.Exit(130))
		Expect(string(session.Err.Contents())).To(ContainSubstring("<== remove: done"), "it removed "+cluster+" itself")
		s.asBefore(ctx)
	}, SpecTimeout(30*time.Minute))

	// Each trial runs up to its phase, so that all together take some ten minutes.
	DescribeTable("is undone by Ctrl-C in any phase, on plain processes", Label("nightly"), func(ctx SpecContext, begins string) {
		session := s.start("run", "apiserver-goroutine-leak", "--provider", "processes", "--pair", "modern", "--runs", s.runs, "--progress", "plain")
		s.says(ctx, session, begins)
		interrupt(session)
		Eventually(ctx, session).WithTimeout(endTime).Should(gexec.Exit(130))
		Expect(lastLine(string(session.Out.Contents()))).To(Equal("relapse: interrupted (exit 130)"))
		s.asBefore(ctx)
	},
		Entry("clusters", "==> cluster"),
		Entry("steady state", "==> steady state"),
		Entry("baseline", "==> baseline"),
		Entry("fault", "==> fault"),
		Entry("recovery", "==> recovery"),
	)

	It("is undone by relapse clean when it was killed while the fault is in force, and not before", func(ctx SpecContext) {
		session, cluster := s.run(ctx)
		s.says(ctx, session, saysFlooded)
		alive := s.relapse(ctx, "clean", "--all")
		Expect(alive.code).To(Equal(0), alive.said())
		Expect(alive.out).To(ContainSubstring(cluster+" is running"), "a run that lives is left alone")
		Expect(containers(ctx, cluster)).To(HaveLen(3))
		Expect(session.ExitCode()).To(Equal(-1), "the run goes on")

		session.Kill().Wait(endTime)
		Expect(containers(ctx, cluster)).To(HaveLen(3), "nobody has removed its nodes yet")
		Expect(names(tree(s.state))).NotTo(BeEmpty(), "its ledger is there")
		clean := s.relapse(ctx, "clean")
		Expect(clean.code).To(Equal(0), clean.said())
		Expect(clean.out).To(ContainSubstring("removed what " + cluster + " had left"))
		s.asBefore(ctx)
		again := s.relapse(ctx, "clean")
		Expect(again.code).To(Equal(0), again.said())
		Expect(again.out).To(BeEmpty(), "nothing was left to undo")
	}, SpecTimeout(40*time.Minute))

	It("isn't touched when another run beside it is killed and cleaned", Label("nightly"), func(ctx SpecContext) {
		dead, gone := s.run(ctx)
		living, cluster := s.run(ctx)
		Expect(gone).NotTo(Equal(cluster))
		Eventually(ctx, func() ([]string, error) { return containers(ctx, gone) }).WithTimeout(3 * time.Minute).ShouldNot(BeEmpty())
		dead.Kill().Wait(endTime)
		clean := s.relapse(ctx, "clean", "--all")
		Expect(clean.code).To(Equal(0), clean.said())
		Expect(clean.out).To(And(ContainSubstring("removed what "+gone), ContainSubstring(cluster+" is running")))
		Expect(containers(ctx, gone)).To(BeEmpty())

		s.says(ctx, living, saysHealing)
		Eventually(ctx, living).WithTimeout(10 * time.Minute).Should(gexec.Exit(verdict.ExitOK))
		Expect(lastLine(string(living.Out.Contents()))).To(Equal("relapse: Validated (exit 0)"))
		Expect(os.RemoveAll(s.runs)).To(Succeed()) // runs keep their evidence on purpose
		s.asBefore(ctx)
	}, SpecTimeout(30*time.Minute))
})
