package cli

import (
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// BenchmarkRatio has match read a small file, as a process of its own, beside a process that only prints its version.
func BenchmarkRatio(b *testing.B) {
	small, err := filepath.Abs("../match/testdata/cases/quote/quote.txt")
	if err != nil {
		b.Fatal(err)
	}
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	var matches, versions time.Duration
	for b.Loop() {
		before := used()
		if out, err := exec.CommandContext(b.Context(), "relapse", "version").CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		between := used()
		out, err := exec.CommandContext(b.Context(), "relapse", "match", small).CombinedOutput()
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 1 {
			b.Fatalf("%v: %s", err, out)
		}
		versions, matches = versions+between-before, matches+used()-between
	}
	b.ReportMetric(matches.Seconds()/float64(b.N), "match-CPU-s")
	b.ReportMetric(versions.Seconds()/float64(b.N), "version-CPU-s")
	b.ReportMetric(matches.Seconds()/versions.Seconds(), "times-version-CPU")
}
