//go:build cluster

package processes_test

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// restTime is how long a control plane is left alone before it is looked at, and then looked at.
const restTime = 10 * time.Second

// BenchmarkCreateRatio times the start of envtest's bare etcd and kube-apiserver until the first request is answered,
// and then ours of the same programs, with the scheduler and the controllers ready too, and reports the ratio and
// what each takes at rest:
//
//	go test -tags cluster -run '^$' -bench Ratio -benchtime 3x ./harness/cluster/processes
func BenchmarkCreateRatio(b *testing.B) {
	p, programs := prepared(b)
	var bare, ours float64 // seconds for one
	b.Run("bare", func(b *testing.B) {
		defer func() { bare = b.Elapsed().Seconds() / float64(b.N) }()
		for i := 0; b.Loop(); i++ {
			env := &envtest.Environment{ControlPlane: envtest.ControlPlane{
				Etcd: &envtest.Etcd{Path: programs["etcd"]}, APIServer: &envtest.APIServer{Path: programs["kube-apiserver"]},
			}}
			_, err := env.Start()
			b.StopTimer()
			if err != nil {
				b.Error(err)
			}
			if i == 0 {
				atRest(b, func(cmdline string) bool {
					return strings.HasPrefix(cmdline, programs["etcd"]) || strings.HasPrefix(cmdline, programs["kube-apiserver"])
				})
			}
			if err := env.Stop(); err != nil {
				b.Error(err)
			}
			b.StartTimer()
		}
	})
	b.Run("relapse", func(b *testing.B) {
		defer func() {
			ours = b.Elapsed().Seconds() / float64(b.N)
			b.ReportMetric(ours/bare, "times-bare-envtest")
		}()
		for i := 0; b.Loop(); i++ {
			c, err := p.Create(b.Context(), name, topology(nil))
			b.StopTimer()
			if err != nil {
				b.Fatal(err)
			}
			if i == 0 {
				home := filepath.Dir(c.Nodes()[0].Abilities().LogFolder())
				atRest(b, func(cmdline string) bool { return strings.Contains(cmdline, home) })
			}
			if err := p.Delete(context.Background(), name); err != nil {
				b.Error(err)
			}
			b.StartTimer()
		}
	})
}

// atRest reports the memory that some processes hold and the share of one CPU that they use while nobody asks anything.
func atRest(b *testing.B, ours func(cmdline string) bool) {
	b.Helper()
	look := func() (mib, seconds float64) {
		all, err := procfs.AllProcs()
		if err != nil {
			b.Fatal(err)
		}
		for _, one := range all {
			argv, err := one.CmdLine()
			if err != nil || !ours(strings.Join(argv, " ")) {
				continue
			}
			if stat, err := one.Stat(); err == nil {
				mib, seconds = mib+float64(stat.ResidentMemory())/(1<<20), seconds+stat.CPUTime()
			}
		}
		return mib, seconds
	}
	time.Sleep(restTime)
	_, before := look()
	time.Sleep(restTime)
	mib, after := look()
	b.Logf("at rest: %s MiB, %s of a CPU", strconv.FormatFloat(mib, 'f', 0, 64),
		strconv.FormatFloat((after-before)/restTime.Seconds(), 'f', 3, 64))
}
