//go:build cluster

package e2e_test

import (
	"bytes"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// A container that crashed left its log on its node, and its kubelet returns that log until the next crash. A process
// that crashed left its log with its supervisor.
var _ = Describe("A component that crashed", Label("nightly"), func() {
	It("is told by the same stack from its node's files, from its kubelet's previous log and from a supervisor's files", func(ctx SpecContext) {
		crash := func(v judge.Verdict) string {
			GinkgoHelper()
			for _, f := range armOf(v, "vulnerable").Signature {
				if f.Name == "panicked" {
					Expect(f.Met).To(Equal(check.True), f.Seen)
					return calls(f.Detail)
				}
			}
			Fail("the signature has no panicked")
			return ""
		}
		const scenario = "scheduler-nil-pointer"
		_, v := reproduce(ctx, scenario, verdict.Validated, verdict.ExitOK, "--pair", "modern", "--provider", "processes")
		supervised := crash(v)
		Expect(supervised).To(ContainSubstring("nodevolumelimits.(*CSILimits).checkAttachableInlineVolume"))

		dir := filepath.Join(scratch, "crash-"+draw())
		Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
		ran := relapse(ctx, dir, "run", scenario, "--pair", "modern", "--provider", "kind", "--retain", "--progress", "plain")
		kubeconfig := kept(dir, ran)["vulnerable"]
		v, err := judge.Run(filepath.Join(dir, "runs", "latest"))
		Expect(err).NotTo(HaveOccurred())
		Expect(crash(v)).To(Equal(supervised), "by the files of the container's node")

		cmd := osexec.CommandContext(ctx, "kubectl", "--kubeconfig", kubeconfig, "--namespace", "kube-system", "logs", "--selector", "component=kube-scheduler",
			"--previous", "--tail", "-1")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		log, err := cmd.Output()
		Expect(err).NotTo(HaveOccurred(), errs.String())
		at := bytes.LastIndex(log, []byte("\npanic: "))
		Expect(at).To(BeNumerically(">=", 0), "the kubelet's previous log")
		d, err := goroutine.Read(bytes.NewReader(log[at+1:]))
		Expect(err).NotTo(HaveOccurred())
		var text strings.Builder
		Expect(d.Groups[0].Write(&text)).To(Succeed())
		Expect(calls(text.String())).To(Equal(supervised), "by the kubelet's previous log")
	}, SpecTimeout(60*time.Minute))
})

// calls returns the functions of a stack, the innermost first.
func calls(stack string) string {
	_, stack, _ = strings.Cut(stack, "goroutine ")
	var out []string
	for line := range strings.Lines(stack) {
		if name, _, ok := strings.Cut(line, "("); ok && !strings.HasPrefix(line, "\t") {
			out = append(out, strings.TrimSpace(name+strings.TrimSuffix(line[len(name):], "\n")))
		}
	}
	return strings.Join(out, "\n")
}
