package goroutine_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/DataDog/gostackparse"
	panicparse "github.com/maruel/panicparse/v2/stack"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// The benchmarks read one generated debug=2 dump of 200,000 goroutines from a file, as a caller would, so that the
// input itself takes no heap. `go test -run '^$' -bench . ./harness/evidence/goroutine` runs all; BenchmarkRatio alone
// answers the question.
const generated = 200_000

// shapes are the stacks of the generated dump: function, file, and whether the call was inlined.
var shapes = []struct {
	state  string
	frames int
	owner  string
}{
	{"chan send", 10, "k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG)"},
	{"select", 14, "k8s.io/apiserver/pkg/registry/generic/registry.(*Store)"},
	{"IO wait", 20, "golang.org/x/net/http2.(*serverConn)"},
	{"sync.Mutex.Lock", 12, "k8s.io/client-go/tools/cache.(*sharedIndexInformer)"},
	{"chan receive", 16, "google.golang.org/grpc/internal/transport.(*http2Client)"},
}

// generate writes the dump: ids, ages, arguments, offsets and parents differ from goroutine to goroutine.
func generate(w io.Writer, n int) error {
	rnd := rand.New(rand.NewPCG(1, 2))
	b := bufio.NewWriterSize(w, 1<<20)
	for i := range n {
		s := shapes[rnd.IntN(len(shapes))]
		fmt.Fprintf(b, "goroutine %d [%s", 17+i*3, s.state)
		if age := rnd.IntN(90); age > 0 {
			fmt.Fprintf(b, ", %d minutes", age)
		}
		b.WriteString("]:\n")
		for f := range s.frames {
			file := strings.ReplaceAll(s.owner[:strings.LastIndex(s.owner, ".(")], "k8s.io/", "/go/src/k8s.io/")
			if f%5 == 3 {
				fmt.Fprintf(b, "%s.step%d(...)\n\t%s/step.go:%d\n", s.owner, f, file, 40+7*f)
				continue
			}
			fmt.Fprintf(b, "%s.step%d(0xc%09x, {0x%x?, 0xc%09x?}, 0x%x)\n\t%s/step.go:%d +0x%x\n",
				s.owner, f, rnd.IntN(1<<36), 0x2a4c00+f, rnd.IntN(1<<36), rnd.IntN(512), file, 40+7*f, 0x45+16*f)
		}
		fmt.Fprintf(b, "created by %s.Start in goroutine %d\n\t/go/src/start.go:%d +0x2a5\n\n", s.owner, rnd.IntN(20000), 100+s.frames)
	}
	return b.Flush()
}

// dump generates the dump once for all benchmarks of one run. The file has no name any more, so that nothing stays
// behind.
var dump = sync.OnceValues(func() (*os.File, error) {
	f, err := os.CreateTemp("", "relapse-bench-*.debug2")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, err
	}
	return f, generate(f, generated)
})

// readers are what is compared. Each returns the number of goroutines that it saw.
var readers = []struct {
	name string
	read func(io.Reader) (int, error)
}{
	{"relapse", func(r io.Reader) (int, error) {
		d, err := goroutine.Read(r)
		if err != nil {
			return 0, err
		}
		if len(d.Groups) != len(shapes) {
			return 0, fmt.Errorf("%d groups; want %d", len(d.Groups), len(shapes))
		}
		return d.Total, nil
	}},
	{"gostackparse", func(r io.Reader) (int, error) {
		gs, errs := gostackparse.Parse(r)
		if len(errs) > 0 {
			return 0, errs[0]
		}
		return len(gs), nil
	}},
	{"panicparse", func(r io.Reader) (int, error) {
		// The cheapest settings: no guessing of paths, no reading of sources. Neither it nor gostackparse is asked for
		// groups, which would take panicparse many minutes here: Read gets no credit for making them.
		s, _, err := panicparse.ScanSnapshot(r, io.Discard, &panicparse.Opts{})
		if err != nil && err != io.EOF {
			return 0, err
		}
		return len(s.Goroutines), nil
	}},
}

// once runs one reader over the dump and returns the time it took.
func once(b *testing.B, f *os.File, size int64, i int) time.Duration {
	b.Helper()
	start := time.Now()
	n, err := readers[i].read(io.NewSectionReader(f, 0, size))
	took := time.Since(start)
	if err != nil || n != generated {
		b.Fatalf("%s read %d goroutines, %v; want %d", readers[i].name, n, err, generated)
	}
	return took
}

func open(b *testing.B) (*os.File, int64) {
	b.Helper()
	f, err := dump()
	if err != nil {
		b.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	return f, info.Size()
}

func bench(b *testing.B, i int) {
	f, size := open(b)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		once(b, f, size, i)
	}
	b.StopTimer()
	b.ReportMetric(peak(b, func() { once(b, f, size, i) }), "peak-MiB")
}

func BenchmarkRead(b *testing.B)         { bench(b, 0) }
func BenchmarkGostackparse(b *testing.B) { bench(b, 1) }
func BenchmarkPanicparse(b *testing.B)   { bench(b, 2) }

// BenchmarkRatio runs all three in turn, so that a busy machine slows them alike, and reports how many times faster
// Read is than the faster of the others (by the median of its rounds), and Read's peak of heap.
func BenchmarkRatio(b *testing.B) {
	f, size := open(b)
	var took [3][]time.Duration
	for b.Loop() {
		for i := range readers {
			runtime.GC()
			took[i] = append(took[i], once(b, f, size, i))
		}
	}
	b.StopTimer()
	var median [3]time.Duration
	for i, t := range took {
		slices.Sort(t)
		median[i] = t[len(t)/2]
		b.ReportMetric(float64(size)/1e6/median[i].Seconds(), readers[i].name+"-MB/s")
	}
	b.ReportMetric(min(median[1], median[2]).Seconds()/median[0].Seconds(), "x-faster-than-fastest")
	b.ReportMetric(peak(b, func() { once(b, f, size, 0) }), "peak-MiB")
}

// peak is the most heap that f held above what was there before, in MiB, garbage included. A sampler reads the heap
// while f runs, so a peak shorter than its pause may escape it.
func peak(b *testing.B, f func()) float64 {
	b.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, top := m.HeapAlloc, m.HeapAlloc
	done, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			runtime.ReadMemStats(&m)
			top = max(top, m.HeapAlloc)
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
	f()
	close(done)
	<-sampled
	return float64(top-before) / (1 << 20)
}

func TestGenerated(t *testing.T) {
	var text strings.Builder
	if err := generate(&text, 1000); err != nil {
		t.Fatal(err)
	}
	d := read(t, text.String())
	if d.Total != 1000 || len(d.Groups) != len(shapes) || d.Truncated {
		t.Errorf("total %d, %d groups, truncated %t; want 1000, %d, false", d.Total, len(d.Groups), d.Truncated, len(shapes))
	}
	for _, g := range d.Groups {
		if len(g.IDs) != g.Count || g.MaxWait < time.Minute || g.CreatedBy == "" {
			t.Errorf("group %s: %d ids for %d goroutines, at most %v, created by %q", g.State, len(g.IDs), g.Count, g.MaxWait, g.CreatedBy)
		}
	}
	if base := filepath.Base(d.Groups[0].Frames[0].File); base != "step.go" {
		t.Errorf("the first frame's file is %s", base)
	}
}
