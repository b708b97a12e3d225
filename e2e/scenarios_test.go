//go:build cluster

package e2e_test

import (
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// scenarios makes an entry of every folder below scenarios/. It is read before any spec runs, so it fails by panicking.
func scenarios() []any {
	all, err := filepath.Glob(filepath.Join("..", "scenarios", "*", scenario.FileName))
	if err != nil || len(all) == 0 {
		panic("there is no scenario to run")
	}
	var out []any
	for _, f := range all {
		name := filepath.Base(filepath.Dir(f))
		out = append(out, Entry(name, Label("nightly"), SpecTimeout(45*time.Minute), name))
	}
	return out
}

var _ = DescribeTable("A scenario's default pair, with the component's own constants",
	append([]any{func(ctx SpecContext, name string) {
		s := newSite(ctx)
		session := s.start("run", name, "--out", s.runs, "--progress", "plain")
		Eventually(ctx, session).WithTimeout(40 * time.Minute).Should(gexec.Exit(verdict.ExitOK))
		Expect(lastLine(string(session.Out.Contents()))).To(Equal("relapse: Validated (exit 0)"))
		latest := filepath.Join(s.runs, "latest")
		v, err := report.JudgeRun(latest)
		Expect(err).NotTo(HaveOccurred())
		show(v)
		concluded(v, verdict.Validated, verdict.ExitOK)
		Expect(v.Deviates).To(BeEmpty())
		want, err := v.JSON()
		Expect(err).NotTo(HaveOccurred())
		Expect(content(filepath.Join(latest, report.VerdictFile))).To(Equal(want))
		Expect(os.RemoveAll(s.runs)).To(Succeed()) // its evidence stays on purpose
		s.clusters = append(s.clusters, v.Trials[0].World.Run)
		s.asBefore(ctx)
	}}, scenarios()...)...)
