//go:build cluster

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	osexec "os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// result is what a command that ended has said.
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

// lastLine is the last line of a text.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
