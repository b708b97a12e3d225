//go:build cluster

package e2e_test

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/cluster/kind"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	_ "github.com/kube-relapse/relapse/scenarios"
)

// What all specs share.
var (
	root    string               // the module's root
	scratch string               // a folder that is removed after the suite
	program string               // the command line program, built from this checkout
	made    *artifacts.Artifacts // with the smoke pair built, so that no spec waits for a build
	image   string               // the node image of the smoke pair's nodes
	smoke   *plan.Plan           // one trial of pleg-deadlock's smoke pair
	events  = event.NewStream(&event.Lines{W: GinkgoWriter})
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
}, NodeTimeout(30*time.Minute))

func prepare(ctx SpecContext) {
	var err error
	root, err = filepath.Abs("..")
	Expect(err).NotTo(HaveOccurred())
	scratch, err = os.MkdirTemp("", "relapse-e2e-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return os.RemoveAll(scratch) })

	program = goBuild(ctx, "relapse", "./harness/cmd/relapse")
	made, err = artifacts.Open(artifacts.Options{Root: root, Events: events})
	Expect(err).NotTo(HaveOccurred(), "opening the cache")
	DeferCleanup(func() error { return made.Close() })
	smoke = newPlan(plan.Options{})
	Expect(made.Prepare(ctx, smoke)).To(Succeed(), "building the arms")
	prov, err := kind.New(kind.Options{Dir: scratch, Events: events})
	Expect(err).NotTo(HaveOccurred())
	_, err = prov.Prepare(ctx, smoke.Needs(made))
	Expect(err).NotTo(HaveOccurred(), "getting the node image")
	image = prov.NodeImage(smoke.Version)
	start(smoke)
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
