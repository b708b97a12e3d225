package churn_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

// The benchmarks read one object's versions of about 5 KB from a sealed bundle, decompression included, as a check
// does. `go test -run '^$' -bench Ratio -benchtime 3x ./harness/evidence/churn` answers the question.
const generated = 5_000

// sealed records the versions in a bundle.
func sealed(b *testing.B) (bundle.View, bundle.Artifact) {
	b.Helper()
	w, err := bundle.Create(filepath.Join(b.TempDir(), "001"))
	if err != nil {
		b.Fatal(err)
	}
	st, err := w.Stream(bundle.Meta{Kind: bundle.Objects, Arm: "vulnerable"}, "jsonl"+bundle.Packed)
	if err != nil {
		b.Fatal(err)
	}
	for line := range bytes.Lines(record(generated)) {
		if err := st.Line(line); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Seal(); err != nil {
		b.Fatal(err)
	}
	v, err := bundle.Open(w.Dir())
	if err != nil {
		b.Fatal(err)
	}
	return v, v.Artifacts(bundle.Query{})[0]
}

// readers are what is compared. Each returns how many writes changed nothing but the condition's time.
var readers = []struct {
	name string
	read func(io.Reader) (int, error)
}{
	{"relapse", func(r io.Reader) (int, error) {
		n := 0
		for u, err := range churn.Updates(r) {
			if err != nil {
				return n, err
			}
			if u.Effective() && u.Class == monitored && u.Manager == "fleet-agent-vulnerable" {
				n++
			}
		}
		return n, nil
	}},
	{"json-and-walk", func(r io.Reader) (int, error) { // with no way to tell who wrote
		return plainly(r, func(before, after []byte) (bool, error) {
			paths, err := naive(before, after)
			return len(paths) == 1 && paths[0] == monitored, err
		})
	}},
	{"go-cmp", func(r io.Reader) (int, error) {
		return plainly(r, func(before, after []byte) (bool, error) {
			a, err := decode(before)
			if err != nil {
				return false, err
			}
			b, err := decode(after)
			if err != nil {
				return false, err
			}
			var found paths
			cmp.Equal(a, b, cmp.Reporter(&found))
			return found.n == 3, nil // resourceVersion, a manager's time, and the condition's
		})
	}},
	{"json-merge-patch", func(r io.Reader) (int, error) {
		return plainly(r, func(before, after []byte) (bool, error) {
			patch, err := jsonpatch.CreateMergePatch(before, after)
			return bytes.Contains(patch, []byte(`"status":{"conditions":[`)), err // a patch repeats a list as a whole
		})
	}},
}

// paths counts the differences that go-cmp reports.
type paths struct{ n int }

func (*paths) PushStep(cmp.PathStep) {}
func (*paths) PopStep()              {}
func (p *paths) Report(r cmp.Result) {
	if !r.Equal() {
		p.n++
	}
}

// plainly decodes each line, and has each version compared with the one before it.
func plainly(r io.Reader, same func(before, after []byte) (bool, error)) (int, error) {
	in := bufio.NewReaderSize(r, 256<<10)
	var before []byte
	n := 0
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		var v churn.Version
		if err := json.Unmarshal(line, &v); err != nil {
			return n, err
		}
		if before != nil {
			ok, err := same(before, v.Object)
			if err != nil {
				return n, err
			}
			if ok {
				n++
			}
		}
		before = v.Object
	}
}

// once has one reader read the artifact and returns the time it took.
func once(b *testing.B, v bundle.View, a bundle.Artifact, i int) time.Duration {
	b.Helper()
	start := time.Now()
	r, err := v.Open(a)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	n, err := readers[i].read(r)
	took := time.Since(start)
	if err != nil || n != generated {
		b.Fatalf("%s found %d writes, %v; want %d", readers[i].name, n, err, generated)
	}
	return took
}

// BenchmarkUpdates is the package's reader alone.
func BenchmarkUpdates(b *testing.B) {
	v, a := sealed(b)
	b.SetBytes(int64(len(record(generated))))
	b.ReportAllocs()
	for b.Loop() {
		once(b, v, a, 0)
	}
	b.ReportMetric(float64(generated)*float64(b.N)/b.Elapsed().Seconds(), "updates/s")
}

// BenchmarkRatio runs all readers in turn, so that a busy machine slows them alike, and reports how many times faster
// Updates is than the fastest of the others, by the median of the rounds.
func BenchmarkRatio(b *testing.B) {
	v, a := sealed(b)
	took := make([][]time.Duration, len(readers))
	for b.Loop() {
		for i := range readers {
			runtime.GC()
			took[i] = append(took[i], once(b, v, a, i))
		}
	}
	b.StopTimer()
	var median []time.Duration
	for i, t := range took {
		slices.Sort(t)
		median = append(median, t[len(t)/2])
		b.ReportMetric(generated/median[i].Seconds(), readers[i].name+"-updates/s")
	}
	b.ReportMetric(slices.Min(median[1:]).Seconds()/median[0].Seconds(), "x-faster-than-fastest")
	b.ReportMetric(float64(a.Size)/generated, "bytes-on-disk/update")
}

// The generated objects are as large as they are said to be.
func TestGenerated(t *testing.T) {
	if n := len(bundleDeployment(3)); n < 4<<10 || n > 6<<10 {
		t.Error(fmt.Sprintf("an object has %d bytes, want 4 to 6 KiB", n))
	}
}
