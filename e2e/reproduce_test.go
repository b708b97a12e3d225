//go:build cluster

package e2e_test

import (
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// reproduce runs a scenario through the command line, judges its evidence and wants that verdict of both.
func reproduce(ctx SpecContext, scenario string, want verdict.Verdict, exit int, args ...string) (dir string, v report.Verdict) {
	GinkgoHelper()
	s := newSite(ctx)
	session := s.start(append([]string{"run", scenario, "--out", s.runs, "--progress", "plain"}, args...)...)
	Eventually(ctx, session).WithTimeout(20 * time.Minute).Should(gexec.Exit())
	dir, err := filepath.EvalSymlinks(filepath.Join(s.runs, "latest"))
	Expect(err).NotTo(HaveOccurred(), "%s", session.Err.Contents())
	v, err = report.JudgeRun(dir)
	Expect(err).NotTo(HaveOccurred())
	show(v)
	concluded(v, want, exit)
	Expect(session.ExitCode()).To(Equal(exit))
	Expect(lastLine(string(session.Out.Contents()))).To(Equal(v.LastLine()))
	return dir, v
}
