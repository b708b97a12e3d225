package match_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/match"
)

// logLines writes about n bytes of what a node logs: kubelet's own lines, those of containers as CRI wraps them, and
// the journal's.
func logLines(w io.Writer, rnd *rand.Rand, n int) {
	places := []string{"reconciler_common.go:251", "kubelet.go:2537", "proxier.go:802", "httplog.go:132", "garbagecollector.go:529"}
	texts := []string{
		`"operationExecutor.VerifyControllerAttachedVolume started for volume" volumeName="kube-api-access" pod="kube-system/p%d"`,
		`"SyncLoop (PLEG): event for pod" pod="default/p%d" event={"ID":"5f0c","Type":"ContainerStarted","Data":"2a9b"}`,
		`"HTTP" verb="LIST" URI="/api/v1/namespaces/n%d/pods?limit=500" latency="1.203ms" userAgent="kube-controller-manager/v1.34.4 (linux/amd64)" resp=200`,
		`"Error syncing pod, skipping" err="failed to \"StartContainer\" for \"c\" with CrashLoopBackOff" pod="default/p%d"`,
	}
	for written := 0; written < n; {
		text := fmt.Sprintf("I0301 10:%02d:%02d.%06d    1234 %s] ", rnd.IntN(60), rnd.IntN(60), rnd.IntN(1e6), places[rnd.IntN(len(places))]) +
			fmt.Sprintf(texts[rnd.IntN(len(texts))], rnd.IntN(5000))
		switch rnd.IntN(3) {
		case 0:
			text = "2026-03-01T10:00:00.123456789Z stderr F " + text
		case 1:
			text = `{"__REALTIME_TIMESTAMP":"1772359200000000","_HOSTNAME":"n1","_PID":"1234","_SYSTEMD_UNIT":"kubelet.service","SYSLOG_IDENTIFIER":"kubelet",` +
				`"PRIORITY":"6","_TRANSPORT":"stdout","MESSAGE":` + quoted(text) + "}"
		}
		k, _ := fmt.Fprintln(w, text)
		written += k
	}
}

// stacks writes a dump of n goroutines in twenty places, the first of kubelet's main.
func stacks(w io.Writer, rnd *rand.Rand, n int) {
	io.WriteString(w, "goroutine 1 [select]:\nk8s.io/kubernetes/cmd/kubelet/app.run(0xc420156000)\n\t/server.go:725 +0x1\n\n")
	for i := range n {
		place := rnd.IntN(20)
		fmt.Fprintf(w, "goroutine %d [chan receive, %d minutes]:\n", i+2, rnd.IntN(90)+1)
		for f := range 2 + place%5 {
			fmt.Fprintf(w, "k8s.io/apimachinery/pkg/watch.(*Broadcaster).loop%d(0xc%09x, {0x2a4c00, 0xc%09x?})\n\t/go/src/k8s.io/apimachinery/pkg/watch/mux.go:%d +0x66\n",
				place, rnd.IntN(1<<36), rnd.IntN(1<<36), 200+10*f)
		}
		fmt.Fprintf(w, "created by k8s.io/apimachinery/pkg/watch.NewBroadcaster in goroutine %d\n\t/go/src/k8s.io/apimachinery/pkg/watch/mux.go:77 +0x116\n\n", rnd.IntN(i+1)+1)
	}
}

// BenchmarkRatio reads a gigabyte of logs and stacks, and a dump of 200,000 goroutines, each from a file that lies in
// the page cache, and grep -c counts in the same files beside it. Another program's load changes the rates by the
// clock, but hardly those of a second of CPU.
func BenchmarkRatio(b *testing.B) {
	if _, err := exec.LookPath("grep"); err != nil {
		b.Skip("there is no grep")
	}
	all := known(b)
	for _, c := range []struct {
		name  string
		write func(io.Writer, *rand.Rand)
	}{
		{"logs-and-stacks", func(w io.Writer, rnd *rand.Rand) {
			for range 3 {
				logLines(w, rnd, 270<<20)
				stacks(w, rnd, 100_000)
			}
		}},
		{"goroutines", func(w io.Writer, rnd *rand.Rand) { stacks(w, rnd, 200_000) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			f, err := os.Create(filepath.Join(b.TempDir(), "kubelet.log"))
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			w := bufio.NewWriterSize(f, 1<<20)
			c.write(w, rand.New(rand.NewPCG(1, 2)))
			if err := w.Flush(); err != nil {
				b.Fatal(err)
			}
			info, err := f.Stat()
			if err != nil {
				b.Fatal(err)
			}
			var ours, oursCPU, greps, grepsCPU time.Duration
			for b.Loop() {
				began, cpu := time.Now(), cpuTime(syscall.RUSAGE_CHILDREN)
				if out, err := exec.Command("grep", "-c", "PLEG is not healthy", f.Name()).CombinedOutput(); len(out) == 0 {
					b.Fatal(err)
				}
				greps, grepsCPU = greps+time.Since(began), grepsCPU+cpuTime(syscall.RUSAGE_CHILDREN)-cpu
				began, cpu = time.Now(), cpuTime(syscall.RUSAGE_SELF)
				if _, err := match.Run(context.Background(), all, shipped(b), []string{f.Name()}, nil); err != nil {
					b.Fatal(err)
				}
				ours, oursCPU = ours+time.Since(began), oursCPU+cpuTime(syscall.RUSAGE_SELF)-cpu
			}
			rate := func(d time.Duration) float64 { return float64(info.Size()) * float64(b.N) / d.Seconds() / 1e6 }
			b.ReportMetric(float64(info.Size())/1e6, "MB")
			b.ReportMetric(rate(ours), "MB/s")
			b.ReportMetric(rate(oursCPU), "MB/CPU-s")
			b.ReportMetric(rate(greps), "grep-MB/s")
			b.ReportMetric(rate(grepsCPU), "grep-MB/CPU-s")
			b.ReportMetric(oursCPU.Seconds()/grepsCPU.Seconds(), "times-grep-CPU")
		})
	}
}

// cpuTime is what this process, or its children that have ended, have used.
func cpuTime(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
