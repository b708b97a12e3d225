package checktest

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// DeleteCollection is the function whose goroutines leak.
const DeleteCollection = "k8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection"

// Shot is a pair of goroutine profiles of an API server at a second.
type Shot struct {
	Second float64
	Leaked []int  // ids of those that are blocked in a send
	Extra  string // one more goroutine: a name of extras
	Top    int    // goroutines on top of the function that only debug=1 shows
	Lacks  string // "1" or "2" failed; "~1", "~2" is cut short
	Others []SameStack
	MadeBy string // the others' creator; "" is DeleteCollection
}

// SameStack are goroutines of one stack that only debug=2 shows, with the ids first, first+1, …
type SameStack struct {
	N     int
	In    string // the function that waits
	State string
	First int
}

// extras are goroutines of calls that aren't over.
var extras = map[string]string{
	"handler": "goroutine 9001 [select]:\nk8s.io/apiserver/pkg/endpoints/handlers/finisher.finishRequest(0x1)\n\t/f.go:1 +0x1\n" +
		"k8s.io/apiserver/pkg/endpoints.(*APIInstaller).registerResourceHandlers.restfulDeleteCollection.func32(0x1)\n\t/i.go:1 +0x1\n\n",
	"worker": "goroutine 9002 [select]:\ngoogle.golang.org/grpc.(*recvBufferReader).readClient(0x1)\n\t/g.go:1 +0x1\n" +
		DeleteCollection + ".func2()\n\t/store.go:1151 +0x1\n\n",
	"receiver": "goroutine 9003 [chan receive]:\n" + DeleteCollection + ".func2()\n\t/store.go:1151 +0x1\n\n",
	"get":      "goroutine 9004 [select]:\nk8s.io/apiserver/pkg/endpoints.restfulGetResource.func1(0x1)\n\t/i.go:1 +0x1\n\n",
}

// Leaks is a shot with the ids 101, 102, … of so many leaked goroutines.
func Leaks(second float64, n int) Shot {
	s := Shot{Second: second}
	for i := range n {
		s.Leaked = append(s.Leaked, 101+i)
	}
	return s
}

func (s Shot) debug1() string {
	n := len(s.Leaked) + s.Top
	if s.Extra == "receiver" {
		n++
	}
	b := fmt.Sprintf(
		"goroutine profile: total %d\n1 @ 0x1\n#\t0x1\tmain.main+0x1\t/main.go:1\n\n",
		n+1,
	)
	if n > 0 {
		b += fmt.Sprintf(
			"%d @ 0x2\n#\t0x2\t%s.func1+0x59\t/store.go:1132\n\n",
			n,
			DeleteCollection,
		)
	}
	return b
}

func (s Shot) debug2() string {
	b := "goroutine 1 [select, 9 minutes]:\nmain.main()\n\t/main.go:1 +0x1\n\n" + extras[s.Extra]
	for _, o := range s.Others {
		for i := range o.N {
			b += fmt.Sprintf(
				"goroutine %d [%s, 3 minutes]:\n%s()\n\t/store.go:%d +0x59\ncreated by %s in goroutine %d\n\t/store.go:1128 +0x76\n\n",
				o.First+i,
				o.State,
				o.In,
				1132+i%2,
				cmp.Or(s.MadeBy, DeleteCollection),
				7+i,
			)
		}
	}
	for _, id := range s.Leaked {
		b += fmt.Sprintf(
			"goroutine %d [chan send, 3 minutes]:\n%s.func1()\n\t/store.go:1132 +0x59\ncreated by %s in goroutine 7\n\t/store.go:1128 +0x76\n\n",
			id,
			DeleteCollection,
			DeleteCollection,
		)
	}
	return b
}

// Shoot records pairs of profiles, the second of each 200 ms after the first.
func (tr *Trial) Shoot(arm string, shots ...Shot) {
	tr.T.Helper()
	for _, s := range shots {
		for i, one := range []struct {
			kind bundle.Kind
			n    string
			text string
		}{{bundle.Goroutines1, "1", s.debug1()}, {bundle.Goroutines2, "2", s.debug2()}} {
			at := s.Second + 0.2*float64(i)
			switch s.Lacks {
			case one.n:
				tr.Fail(one.kind, arm, at, "connection refused")
				continue
			case "~" + one.n:
				one.text = one.text[:len(one.text)-20]
			}
			_, err := tr.W.Write(
				bundle.Meta{Kind: one.kind, Arm: arm, Time: tr.At(at)},
				"txt",
				strings.NewReader(one.text),
			)
			tr.Must(err)
		}
	}
}

// Process records that a process was looked at every two seconds of from..to.
func (tr *Trial) Process(arm string, pid int, from, to float64) *bundle.Stream {
	tr.T.Helper()
	st := tr.Stream(bundle.Identity, arm)
	tr.LookAt(st, pid, from, to)
	return st
}

// LookAt records looks at one process, every two seconds.
func (tr *Trial) LookAt(st *bundle.Stream, pid int, from, to float64) {
	tr.T.Helper()
	for s := from; s <= to; s += 2 {
		tr.Must(st.JSON(bundle.IdentitySample{Time: tr.At(s), PID: pid, StartTicks: int64(1000 + pid)}))
	}
}

// Failed are lines about objects whose delete failed, a second apart.
func Failed(second float64, indexes ...int) []Said {
	var out []Said
	for i, n := range indexes {
		out = append(out, Said{Second: second + float64(i), Message: fmt.Sprintf(
			`I1121 15:07:34.121212       1 store.go:1160] "Delete object in DeleteCollection failed" object="relapse-deletes-0/item-%05d" err="context deadline exceeded"`,
			n,
		)})
	}
	return out
}

// Apiserver is an API server's evidence: one process, its log from 0 to 394 s, a load of 1000 objects, and pairs of
// profiles.
func Apiserver(arm string, lines []Said, shots ...Shot) func(*Trial) {
	return func(tr *Trial) {
		tr.Phases()
		tr.Process(arm, 312, 0, 394)
		tr.Log(arm, "kube-apiserver", 0, 394, lines...)
		tr.Loaded(arm, "deletes", 1000)
		tr.Shoot(arm, shots...)
	}
}

// Loaded records the summary of a load that made 20 calls 5 s into the fault, of which nobody saw what became.
func (tr *Trial) Loaded(arm, name string, objects int) {
	tr.T.Helper()
	_, err := tr.W.Write(bundle.Meta{Kind: bundle.LoadSummary, Arm: arm, Time: tr.At(280)}, "json",
		strings.NewReader(fmt.Sprintf(`{"name":%q,"objects":%d,"rounds":[{"round":1,"start":"2026-03-01T10:00:45Z","calls":20}]}`, name, objects)))
	tr.Must(err)
}

// Pairs are the kinds of so many pairs of profiles, and what is named after them.
func Pairs(n int, then ...bundle.Kind) []bundle.Kind {
	var out []bundle.Kind
	for range n {
		out = append(out, bundle.Goroutines1, bundle.Goroutines2)
	}
	return append(out, then...)
}

// Heap records a heap profile with so many MiB in use below DeleteCollection, and 40 elsewhere.
func (tr *Trial) Heap(arm string, second float64, mebibytes int64) {
	tr.T.Helper()
	p := &profile.Profile{
		SampleType: []*profile.ValueType{
			{Type: "inuse_objects", Unit: "count"},
			{Type: "inuse_space", Unit: "bytes"},
		},
	}
	for i, s := range []struct {
		names []string
		mib   int64
	}{{[]string{"json.Unmarshal", "k8s.io/apiserver/pkg/storage/etcd3.(*store).GetList", DeleteCollection}, mebibytes}, {[]string{"cacher.New", "main.main"}, 40}} {
		sample := &profile.Sample{Value: []int64{s.mib * 10, s.mib << 20}}
		for j, name := range s.names {
			id := uint64(1 + i*10 + j)
			f := &profile.Function{ID: id, Name: name}
			l := &profile.Location{ID: id, Line: []profile.Line{{Function: f}}}
			p.Function, p.Location, sample.Location = append(p.Function, f), append(p.Location, l), append(sample.Location, l)
		}
		p.Sample = append(p.Sample, sample)
	}
	var b bytes.Buffer
	tr.Must(p.Write(&b))
	_, err := tr.W.Write(
		bundle.Meta{Kind: bundle.Heap, Arm: arm, Time: tr.At(second)},
		"pb.gz",
		&b,
	)
	tr.Must(err)
}

// Heaps records profiles of a process that was watched all along: a second and mebibytes each; below 0 is a capture
// that failed.
func Heaps(arm string, list ...int) func(*Trial) {
	return func(tr *Trial) {
		tr.Phases()
		tr.Process(arm, 312, 0, 394)
		for i := 0; i < len(list); i += 2 {
			if list[i+1] < 0 {
				tr.Fail(bundle.Heap, arm, float64(list[i]), "connection refused")
				continue
			}
			tr.Heap(arm, float64(list[i]), int64(list[i+1]))
		}
	}
}
