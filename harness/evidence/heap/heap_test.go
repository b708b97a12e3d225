package heap_test

import (
	"bytes"
	"compress/gzip"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"github.com/kube-relapse/relapse/harness/evidence/heap"
)

// sample is what a test's profile has: bytes, objects, and functions from the allocating one outwards.
type sample struct {
	bytes, objects int64
	frames         []string
}

// encoded makes a profile with the sample types of a heap, in an order of the test's; two functions joined by a "+" are
// one location, the first inlined into the second.
func encoded(t testing.TB, types []*profile.ValueType, samples ...sample) []byte {
	t.Helper()
	p := &profile.Profile{SampleType: types, PeriodType: &profile.ValueType{Type: "space", Unit: "bytes"}, Period: 512 << 10}
	for _, s := range samples {
		one := &profile.Sample{Value: make([]int64, len(types))}
		for i, typ := range types {
			switch typ.Type {
			case "inuse_space":
				one.Value[i] = s.bytes
			case "inuse_objects":
				one.Value[i] = s.objects
			default:
				one.Value[i] = 1 << 40
			}
		}
		for _, names := range s.frames {
			l := &profile.Location{ID: uint64(len(p.Location) + 1)}
			for name := range strings.SplitSeq(names, "+") {
				f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
				p.Function = append(p.Function, f)
				l.Line = append(l.Line, profile.Line{Function: f, Line: int64(len(p.Function))})
			}
			p.Location = append(p.Location, l)
			one.Location = append(one.Location, l)
		}
		p.Sample = append(p.Sample, one)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var (
	allocObjects = &profile.ValueType{Type: "alloc_objects", Unit: "count"}
	allocSpace   = &profile.ValueType{Type: "alloc_space", Unit: "bytes"}
	inuseObjects = &profile.ValueType{Type: "inuse_objects", Unit: "count"}
	inuseSpace   = &profile.ValueType{Type: "inuse_space", Unit: "bytes"}
)

const (
	collection = "k8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection"
	list       = "k8s.io/apiserver/pkg/registry/generic/registry.(*Store).ListPredicate"
	decode     = "k8s.io/api/core/v1.(*ConfigMap).Unmarshal"
)

func leaky(t testing.TB, types ...*profile.ValueType) []byte {
	return encoded(t, types,
		sample{100, 1, []string{decode, list, collection, "net/http.serve"}},
		sample{40, 4, []string{decode, list, "net/http.serve"}},
		sample{300, 3, []string{decode, list, collection, "net/http.serve"}}, // as above, on another line
		sample{7, 1, []string{decode + "+" + collection + ".func1", "runtime.goexit"}},
		sample{0, 0, []string{collection, "gone"}},
	)
}

func TestRetained(t *testing.T) {
	for name, types := range map[string][]*profile.ValueType{
		"as Go writes it": {allocObjects, allocSpace, inuseObjects, inuseSpace},
		"another order":   {inuseSpace, inuseObjects},
	} {
		t.Run(name, func(t *testing.T) {
			n, objects, largest, err := heap.Retained(bytes.NewReader(leaky(t, types...)), "registry.(*Store).DeleteCollection")
			if err != nil || n != 407 || objects != 5 {
				t.Errorf("got %d bytes, %d objects, %v; want 407 and 5", n, objects, err)
			}
			want := []heap.Stack{
				{Bytes: 400, Objects: 4, Frames: []string{decode, list, collection, "net/http.serve"}},
				{Bytes: 7, Objects: 1, Frames: []string{decode, collection + ".func1", "runtime.goexit"}},
			}
			if diff := cmp.Diff(want, largest); diff != "" {
				t.Errorf("the largest (-want +got):\n%s", diff)
			}
			p, err := heap.Read(bytes.NewReader(leaky(t, types...)))
			if err != nil || p.Bytes != 447 || p.Objects != 9 || len(p.Stacks) != 3 {
				t.Fatalf("in all it is %+v, %v", p, err)
			}
			if n, objects, _ := p.Retained(""); n != p.Bytes || objects != p.Objects {
				t.Errorf("everything is %d bytes, %d objects, and the total %d and %d", n, objects, p.Bytes, p.Objects)
			}
			if n, objects, largest := p.Retained("nobody"); n != 0 || objects != 0 || largest != nil {
				t.Errorf("of nobody there are %d bytes, %d objects, %v", n, objects, largest)
			}
		})
	}
}

func TestRetainedShowsTheLargestFirst(t *testing.T) {
	var samples []sample
	for i := range 30 {
		samples = append(samples, sample{int64(i + 1), 1, []string{"f" + strings.Repeat("x", i)}})
	}
	n, _, largest, err := heap.Retained(bytes.NewReader(encoded(t, []*profile.ValueType{inuseObjects, inuseSpace}, samples...)), "f")
	if err != nil || n != 465 || len(largest) != 30 || largest[0].Bytes != 30 || largest[9].Bytes != 21 {
		t.Errorf("got %d bytes, %v, %v", n, largest, err)
	}
}

func TestRefuses(t *testing.T) {
	var plain bytes.Buffer
	z := gzip.NewWriter(&plain)
	z.Write([]byte("404 page not found"))
	z.Close()
	whole := leaky(t, inuseObjects, inuseSpace)
	for _, c := range []struct {
		name string
		in   []byte
		want string
	}{
		{"a CPU profile", encoded(t, []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}),
			"reading heap profile: its samples are samples/count, cpu/nanoseconds; want inuse_space/bytes and inuse_objects/count"},
		{"no objects", leaky(t, allocObjects, inuseSpace),
			"reading heap profile: its samples are alloc_objects/count, inuse_space/bytes; want inuse_space/bytes and inuse_objects/count"},
		{"another unit", leaky(t, inuseObjects, &profile.ValueType{Type: "inuse_space", Unit: "pages"}),
			"reading heap profile: its samples are inuse_objects/count, inuse_space/pages; want inuse_space/bytes and inuse_objects/count"},
		{"nothing", nil, "reading heap profile: parsing profile: empty input file"},
		{"a text", []byte("404 page not found"), "reading heap profile: parsing profile: unrecognized profile format"},
		{"a text, gzipped", plain.Bytes(), "reading heap profile: parsing profile: unrecognized profile format"},
		{"half of one", whole[:len(whole)/2], "reading heap profile: decompressing profile: unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, _, err := heap.Retained(bytes.NewReader(c.in), ""); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// held keeps what hold allocates.
var held [][]byte

//go:noinline
func hold(n, size int) {
	for range n {
		held = append(held, make([]byte, size))
	}
}

// A profile of this very process shows what it holds, and no more once it let go.
func TestOfARealProcess(t *testing.T) {
	const n, size = 8, 8 << 20 // so large that each is sampled
	take := func() int64 {
		t.Helper()
		runtime.GC()
		var b bytes.Buffer
		if err := pprof.Lookup("heap").WriteTo(&b, 0); err != nil {
			t.Fatal(err)
		}
		bytes, _, largest, err := heap.Retained(&b, "heap_test.hold")
		if err != nil {
			t.Fatal(err)
		}
		if bytes > 0 && !slices.ContainsFunc(largest[0].Frames, func(f string) bool { return strings.HasSuffix(f, "heap_test.hold") }) {
			t.Errorf("the largest is %v", largest[0])
		}
		return bytes
	}
	hold(n, size)
	if got := take(); got < n*size*8/10 || got > n*size*12/10 {
		t.Errorf("%d bytes are held, want about %d", got, n*size)
	}
	held = nil
	if got := take(); got > n*size/10 {
		t.Errorf("%d bytes are held after they were let go", got)
	}
}

func FuzzRead(f *testing.F) {
	whole := leaky(f, inuseObjects, inuseSpace)
	f.Add(whole)
	z, err := gzip.NewReader(bytes.NewReader(whole))
	if err != nil {
		f.Fatal(err)
	}
	var bare bytes.Buffer
	if _, err := bare.ReadFrom(z); err != nil {
		f.Fatal(err)
	}
	f.Add(bare.Bytes())
	f.Fuzz(func(t *testing.T, in []byte) {
		p, err := heap.Read(bytes.NewReader(in))
		if err != nil {
			return
		}
		var n, objects int64
		for _, s := range p.Stacks {
			n, objects = n+s.Bytes, objects+s.Objects
		}
		if n != p.Bytes || objects != p.Objects {
			t.Errorf("the stacks have %d bytes, %d objects, and the total is %d and %d", n, objects, p.Bytes, p.Objects)
		}
		if b, o, largest := p.Retained(""); b != n || o != objects || len(largest) > len(p.Stacks) {
			t.Errorf("everything is %d bytes, %d objects in %d stacks", b, o, len(largest))
		}
	})
}

// Allocated adds up what was ever allocated below a function, once for each sample, and knows when that was.
func TestAllocated(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 0, 0, 5, time.UTC)
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "inuse_space", Unit: "bytes"}, {Type: "alloc_space", Unit: "bytes"}}, TimeNanos: at.UnixNano()}
	for i, name := range []string{"net.interfaceAddrTable", "util.(*NodePortAddresses).GetNodeIPs", "main.main"} {
		p.Function = append(p.Function, &profile.Function{ID: uint64(i + 1), Name: name})
		p.Location = append(p.Location, &profile.Location{ID: uint64(i + 1), Line: []profile.Line{{Function: p.Function[i]}}})
	}
	p.Sample = []*profile.Sample{{Value: []int64{1, 100}, Location: p.Location}, {Value: []int64{1, 20}, Location: p.Location[1:]}, {Value: []int64{1, 3}, Location: p.Location[2:]}}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		under []string
		want  int64
	}{{[]string{"interfaceAddrTable"}, 100}, {[]string{"interfaceAddrTable", "GetNodeIPs"}, 120}, {[]string{"main"}, 123}, {[]string{"nobody"}, 0}, {nil, 0}} {
		got, made, err := heap.Allocated(bytes.NewReader(b.Bytes()), c.under)
		if got != c.want || !made.Equal(at) || err != nil {
			t.Errorf("below %q: %d at %s, %v, want %d", c.under, got, made, err, c.want)
		}
	}
	inUse := encoded(t, []*profile.ValueType{{Type: "inuse_space", Unit: "bytes"}}, sample{1, 1, []string{"f"}})
	if _, _, err := heap.Allocated(bytes.NewReader(inUse), nil); err == nil || !strings.Contains(err.Error(), "it has no alloc_space/bytes among its 1 types of samples") {
		t.Errorf("of what is in use only: %v", err)
	}
	if _, _, err := heap.Allocated(strings.NewReader("Unauthorized"), nil); err == nil || !strings.Contains(err.Error(), "reading heap profile: ") {
		t.Errorf("of no profile: %v", err)
	}
}
