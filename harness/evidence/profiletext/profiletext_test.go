package profiletext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/kube-relapse/relapse/harness/evidence/profiletext"
)

const heap = `heap profile: 3: 245856 [301106: 73998827712] @ heap/1048576
1: 245760 [301102: 73998827520] @ 0x11ddcda 0x11f306e
#	0x11ddcd9	net.interfaceAddrTable+0x679	/usr/local/go/src/net/interface_linux.go:130
#	0x11f306d	k8s.io/kubernetes/pkg/proxy/util.GetNodeAddresses+0xed	/go/utils.go:200

2: 96 [4: 192] @ 0x1
#	0x1	main.main+0x1	/go/main.go:1

# runtime.MemStats
# Alloc = 1
`

const top = `File: kube-proxy
Type: cpu
Time: Feb 11, 2026 at 8:00am (UTC)
Duration: 60s, Total samples = 40s (66.67%)
Showing nodes accounting for 38s, 95% of 40s total
      flat  flat%   sum%        cum   cum%
        4s 10.00% 10.00%        36s 90.00%  net.interfaceAddrTable
       30s 75.00% 85.00%        30s 75.00%  syscall.Syscall6 (inline)
`

const traces = `File: kube-proxy
Type: cpu
Duration: 1mins, Total samples = 40s (66.67%)
-----------+-------------------------------------------------------
       36s   syscall.Syscall6
             net.interfaceAddrTable
-----------+-------------------------------------------------------
        4s   main.main
-----------+-------------------------------------------------------
`

const allocated = `File: kube-proxy
Build ID: 55768f77db433c499551dc0129c2cc5ab27c8361
Type: alloc_space
Time: 2026-11-30 06:02:36 UTC
Showing nodes accounting for 38GB, 95% of 40GB total
Dropped 330 nodes (cum <= 138.90MB)
      flat  flat%   sum%        cum   cum%
       4GB 10.00% 10.00%       36GB 90.00%  net.interfaceAddrTable
      30GB 75.00% 85.00%       30GB 75.00%  syscall.NetlinkRIB (inline)
`

const allocatedTraces = `File: kube-proxy
Type: alloc_space
Time: 2026-11-30 06:02:36 UTC
-----------+-------------------------------------------------------
         0   runtime/pprof.writeHeapInternal
             runtime/pprof.writeHeap
-----------+-------------------------------------------------------
     bytes:  64kB
  512.50kB   syscall.NetlinkRIB (inline)
             net.interfaceAddrTable (inline)
             net.InterfaceAddrs
-----------+-------------------------------------------------------
     bytes:  16B
      16B   main.main
-----------+-------------------------------------------------------
`

const perf = `Samples: 64K of event 'cycles', Event count (approx.): 30299999999
Overhead  Shared Object       Symbol
  61.00%  kube-proxy          [.] net.interfaceAddrTable
   9.00%  [kernel]            [k] copy_user_enhanced_fast_string
`

// under adds up a profile's values whose stack has a function, and all of them.
func under(p profiletext.Profile, at int, function string) (in, all int64) {
	for _, s := range p.Sample {
		all += s.Value[at]
		for _, l := range s.Location {
			if l.Line[0].Function.Name == function {
				in += s.Value[at]
				break
			}
		}
	}
	return in, all
}

func TestRead(t *testing.T) {
	const addresses, second = "net.interfaceAddrTable", 1_000_000_000
	for _, c := range []struct {
		name, text, form, program string
		at                        int
		in, all                   int64
	}{
		{"a heap profile", heap, profiletext.Heap, "", 1, 197743627795, 197745725043},
		{"pprof -top", top, profiletext.CPU, "kube-proxy", 0, 36 * second, 40 * second},
		{"pprof -traces", traces, profiletext.CPU, "kube-proxy", 0, 36 * second, 40 * second},
		{"pprof -top of allocations", allocated, profiletext.Heap, "kube-proxy", 0, 36 << 30, 40 << 30},
		{"pprof -traces of allocations", allocatedTraces, profiletext.Heap, "kube-proxy", 0, 524800, 524816},
		{"perf top", perf, profiletext.Perf, "kube-proxy", 0, 61 * second, 100 * second},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := profiletext.Read([]byte(c.text))
			if err != nil || len(all) != 1 {
				t.Fatalf("%d profiles, %v", len(all), err)
			}
			in, sum := under(all[0], c.at, addresses)
			if all[0].Form != c.form || all[0].Program != c.program || in != c.in || sum != c.all {
				t.Errorf("it is a %s of %q with %d of %d; want a %s of %q with %d of %d", all[0].Form, all[0].Program, in, sum, c.form, c.program, c.in, c.all)
			}
			if err := all[0].CheckValid(); err != nil {
				t.Error(err)
			}
			lines := strings.Split("a line\n"+c.text+"another one, with words\n", "\n")
			texts := make([][]byte, len(lines))
			for i, l := range lines {
				texts[i] = []byte(l)
			}
			if is := fmt.Sprint(profiletext.Find(texts)); strings.Count(is, "false") != 3 {
				t.Errorf("lines of it are %s", is)
			}
		})
	}
	for text, want := range map[string]string{
		"File: x\nType: inuse_space\n":                           "inuse_space as pprof prints it",
		"File: x\nType: cpu\n flat flat% sum% cum cum%\n 1s x\n": "no table or no duration",
	} {
		if _, err := profiletext.Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A heap profile is scaled up as runtime/pprof does, one that lacks records is a part, and each profile of a text says
// where it begins.
func TestHeap(t *testing.T) {
	part := strings.Replace(heap, "2: 96 [4: 192] @ 0x1\n", "", 1)
	every := strings.Replace(heap, "heap/1048576", "heap/2", 1) // MemProfileRate is 1
	all, err := profiletext.Read([]byte(part + every + heap))
	if err != nil || len(all) != 3 {
		t.Fatalf("%d profiles, %v", len(all), err)
	}
	for i, want := range []struct {
		line     int
		in       int64
		part     string
		inUse    int64
		inUseAll int64
	}{
		{1, 197743627795, "its header counts 192 bytes more than its records have", 656733, 656733},
		{10, 73998827520, "", 245760, 245856},
		{20, 197743627795, "", 656733, 1705357},
	} {
		in, _ := under(all[i], 1, "net.interfaceAddrTable")
		inUse, sum := under(all[i], 3, "net.interfaceAddrTable")
		if all[i].Line != want.line || in != want.in || all[i].Part != want.part || inUse != want.inUse || sum != want.inUseAll {
			t.Errorf("profile %d begins at %d (%q) with %d, and %d of %d in use; want %+v", i, all[i].Line, all[i].Part, in, inUse, sum, want)
		}
	}
	theirs, err := profile.ParseData([]byte(heap)) // pprof reads the form, too, but for the names of functions
	if err != nil {
		t.Fatal(err)
	}
	for i, typ := range theirs.SampleType {
		var sum int64
		for _, s := range theirs.Sample {
			sum += s.Value[i]
		}
		if _, ours := under(all[2], i, ""); ours != sum {
			t.Errorf("%s are %d; pprof says %d", typ.Type, ours, sum)
		}
	}
	if _, err := profiletext.Read([]byte(strings.Replace(heap, "heap/1048576", "", 1))); err == nil || !strings.Contains(err.Error(), "how often it sampled") {
		t.Errorf("without its rate: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{heap, top, traces, heap + top, perf, allocated, allocatedTraces} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, _ := profiletext.Read([]byte(text))
		for _, p := range all {
			if err := p.CheckValid(); err != nil {
				t.Errorf("an impossible profile: %v", err)
			}
		}
	})
}
