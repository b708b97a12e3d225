package cli

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// lines is a writer that tells of each line.
type lines struct{ ch chan string }

func (l lines) Write(p []byte) (int, error) {
	l.ch <- strings.TrimSpace(string(p))
	return len(p), nil
}

// What an interrupt says is what happens: a run's Job on Kubernetes goes on, and nothing else is left.
func TestAnInterruptSaysWhatGoesOn(t *testing.T) {
	for _, c := range []struct{ name, goesOn, first, second string }{
		{"nothing", "", "interrupt: stopping, and removing what was made",
			"interrupt: still removing what was made; if this is killed, relapse clean does the rest"},
		{"a Job", "the Job relapse-1a2b3c4d", "interrupt: stopping; the Job relapse-1a2b3c4d goes on",
			"interrupt: still stopping; the Job relapse-1a2b3c4d goes on"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := lines{ch: make(chan string, 1)}
			ctx, stop := interruptible(t.Context(), w)
			defer stop()
			if c.goesOn != "" {
				leaves(ctx, c.goesOn)
			}
			for _, want := range []string{c.first, c.second} {
				if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
					t.Fatal(err)
				}
				if got := <-w.ch; got != want {
					t.Errorf("it says %q, want %q", got, want)
				}
				<-ctx.Done()
			}
		})
	}
}
