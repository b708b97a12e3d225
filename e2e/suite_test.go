//go:build cluster

package e2e_test

import (
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/cluster/kind"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
	_ "github.com/kube-relapse/relapse/scenarios"
)

// What all specs share.
var (
	root    string               // the module's root
	scratch string               // a folder that is removed after the suite, unless something failed
	program string               // the command line program, built from this checkout
	made    *artifacts.Artifacts // with the smoke pair built, so that no spec waits for a build
	image   string               // the node image of the smoke pair's nodes
	smoke   *plan.Plan           // one trial of pleg-deadlock's smoke pair
	events  = event.NewStream(&event.Lines{W: GinkgoWriter})

	prepared, failed bool // of this process: the suite has what it needs; a spec failed
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "relapse on real clusters")
}

// The first process builds what all specs need, which takes about ten minutes on two cores if nothing is cached. The
// other processes find the results in the cache.
var _ = SynchronizedBeforeSuite(prepare, func(ctx SpecContext) {
	if made == nil {
		prepare(ctx)
	}
}, NodeTimeout(50*time.Minute))

func prepare(ctx SpecContext) {
	var err error
	root, err = filepath.Abs("..")
	Expect(err).NotTo(HaveOccurred())
	scratch, err = os.MkdirTemp("", "relapse-e2e-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error {
		if failed || !prepared {
			fmt.Fprintf(os.Stderr, "note: something failed, so what this process worked with stays in %s\n", scratch)
			return nil
		}
		return os.RemoveAll(scratch)
	})

	program = goBuild(ctx, "relapse", "./harness/cmd/relapse")
	made, err = artifacts.Open(artifacts.Options{Root: root, Events: events})
	Expect(err).NotTo(HaveOccurred(), "opening the cache")
	DeferCleanup(func() error { return made.Close() })
	smoke = newPlan(plan.Options{})
	Expect(made.Build(ctx, smoke)).To(Succeed(), "building the arms")
	prov, err := kind.New(kind.Options{Dir: scratch, Events: events})
	Expect(err).NotTo(HaveOccurred())
	_, err = prov.Prepare(ctx, smoke.Needs(made))
	Expect(err).NotTo(HaveOccurred(), "getting the node image")
	image = prov.NodeImage(smoke.Version)
	start(smoke)
	prepared = true
}

// A spec that failed leaves what it worked with.
var _ = ReportAfterEach(func(r SpecReport) { failed = failed || r.Failed() })

// mostTries is how often a trial is run if the host is too busy for it.
const mostTries = 3

// untilJudged runs a trial and judges it. It runs the trial again if its verdict is Inconclusive, isn't as wanted, and says
// that the host was too busy: that is no defect. Any other verdict is returned as it is. run gets the number of the try, from
// 1.
func untilJudged(wanted func(judge.Verdict) bool, run func(try int) (string, judge.Verdict)) (dir string, v judge.Verdict) {
	GinkgoHelper()
	for try := 1; ; try++ {
		dir, v = run(try)
		cause := busy(v)
		if v.Verdict != verdict.VerdictInconclusive || cause == "" || wanted(v) || try == mostTries {
			return dir, v
		}
		AddReportEntry("repeated", fmt.Sprintf("try %d of %d proved nothing, so the trial is run again: %s", try, mostTries, cause))
	}
}

// busy returns what a verdict says of a host that was too busy: its note, or an arm's check that has no answer because the
// subject may have wanted more CPU time than it got. It returns "" if the verdict says nothing of the kind.
func busy(v judge.Verdict) string {
	for _, t := range v.Trials {
		for _, note := range t.Notes {
			if strings.HasPrefix(note, "the host was overloaded: ") {
				return note
			}
		}
	}
	for _, a := range v.Arms {
		for _, f := range slices.Concat(a.Identity, a.Steady, a.Baseline, a.Exposure, a.Signature, a.Healed) {
			if a.Outcome == verdict.Inconclusive && f.Met == check.Unknown && f.Code == check.Starved {
				return fmt.Sprintf("%s of %s: %s", f.Name, a.Name, f.Seen)
			}
		}
	}
	return ""
}

// goBuild builds a static program of this module and returns its path.
func goBuild(ctx SpecContext, name, pkg string) string {
	GinkgoHelper()
	out := filepath.Join(scratch, name)
	cmd := osexec.CommandContext(ctx, "go", "build", "-trimpath", "-o", out, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	said, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "building %s: %s", pkg, said)
	return out
}

// start makes a plan start its nodes from the node image that was prepared for all specs.
func start(p *plan.Plan) {
	for _, t := range p.Trials {
		for _, c := range t.Clusters {
			for i := range c.Topology.Nodes {
				c.Topology.Nodes[i].Image = image
			}
		}
	}
}

// newPlan plans one trial of the smoke pair with the given options.
func newPlan(o plan.Options) *plan.Plan {
	GinkgoHelper()
	s, err := scenario.Load(filepath.Join(root, "scenarios", "pleg-deadlock", scenario.FileName))
	Expect(err).NotTo(HaveOccurred())
	o.Pair, o.Seed = "smoke", 1
	o.Base, err = os.ReadFile(filepath.Join(root, "kind-config.yaml"))
	Expect(err).NotTo(HaveOccurred())
	p, err := plan.New(s, o)
	Expect(err).NotTo(HaveOccurred())
	Expect(p.Trials).To(HaveLen(1))
	start(p)
	return p
}
