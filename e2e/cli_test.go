//go:build cluster

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	osexec "os/exec"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// result is the exit code and the output of a command that ended.
type result struct {
	code      int
	out, errs string
}

func (r result) said() string { return "it printed:\n" + r.out + r.errs }

// relapse runs the program to its end in dir.
func relapse(ctx context.Context, dir string, args ...string) result {
	GinkgoHelper()
	var out, errs bytes.Buffer
	cmd := osexec.CommandContext(ctx, program, append([]string{"--root", root}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
	cmd.Env = os.Environ()
	err := cmd.Run()
	var exit *osexec.ExitError
	if err != nil && !errors.As(err, &exit) {
		Expect(err).NotTo(HaveOccurred())
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// lastLine returns the last line of a text.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

var keeping = regexp.MustCompile("kept the cluster \\S+-(\\S+): KUBECONFIG=(\\S+) kubectl get nodes; `relapse clean (\\S+)` removes it")

// kept returns the kubeconfigs of the clusters that a run with --retain kept, by arm. The clusters are removed after
// the spec.
func kept(dir string, ran result) map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	for i, line := range keeping.FindAllStringSubmatch(ran.errs, -1) {
		out[line[1]] = line[2]
		if i == 0 { // one clean removes all clusters of the run
			DeferCleanup(func(ctx SpecContext) {
				cleaned := relapse(ctx, dir, "clean", line[3])
				Expect(cleaned.code).To(Equal(0), cleaned.said())
			}, NodeTimeout(4*time.Minute))
		}
	}
	Expect(ran.code).To(Equal(0), ran.said())
	return out
}
