package match_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/match"
)

// BenchmarkRatio reads a kubelet's log and a dump of 200,000 goroutines, each from a file that lies in the page cache, and grep -c
// counts in the same files beside it.
func BenchmarkRatio(b *testing.B) {
	if _, err := exec.LookPath("grep"); err != nil {
		b.Skip("there is no grep")
	}
	var dump strings.Builder
	dump.WriteString("goroutine 1 [select]:\nk8s.io/kubernetes/cmd/kubelet/app.run(0xc420156000)\n\t/server.go:725 +0x1\n\n")
	for i := range 200_000 {
		fmt.Fprintf(&dump, "goroutine %d [chan receive, %d minutes]:\nk8s.io/apimachinery/pkg/watch.(*Broadcaster).loop(0xc000%d)\n\t/mux.go:268 +0x66\n"+
			"created by k8s.io/apimachinery/pkg/watch.NewBroadcaster in goroutine 1\n\t/mux.go:77 +0x116\n\n", i+2, i%90+1, i)
	}
	all := known(b)
	for name, text := range map[string]string{"log": strings.Repeat(usual, 256<<20/len(usual)), "dump": dump.String()} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "kubelet.log")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
			var ours, greps time.Duration
			for b.Loop() {
				began := time.Now()
				if out, err := exec.Command("grep", "-c", "PLEG is not healthy", path).CombinedOutput(); len(out) == 0 {
					b.Fatal(err)
				}
				greps += time.Since(began)
				began = time.Now()
				if _, err := match.Run(context.Background(), all, []string{path}, nil); err != nil {
					b.Fatal(err)
				}
				ours += time.Since(began)
			}
			rate := func(d time.Duration) float64 { return float64(len(text)) * float64(b.N) / d.Seconds() / 1e6 }
			b.ReportMetric(rate(ours), "MB/s")
			b.ReportMetric(rate(greps), "grep-MB/s")
			b.ReportMetric(ours.Seconds()/greps.Seconds(), "times-grep")
		})
	}
}
