package match_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/match"
)

type file struct{ name, text, link string }

func tarred(t testing.TB, all ...file) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range all {
		h := &tar.Header{Name: f.name, Size: int64(len(f.text)), Mode: 0o644, Typeflag: tar.TypeReg}
		if f.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.link
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, f.text)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func gzipped(t testing.TB, from io.Reader) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.Copy(w, from); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return b.String()
}

// endless gives the same byte again and again.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// What is hostile or broken is named, and the incident beside it is still found.
func TestHostile(t *testing.T) {
	good := file{name: "kubelet.txt", text: kubelet("chan send, 1140 minutes", "sleep")}
	for name, c := range map[string]struct {
		file file
		want string
	}{
		"a bomb":                      {file{name: "b", text: gzipped(t, io.LimitReader(endless('x'), 128<<20))}, "it unpacks to too much"},
		"a name that leaves":          {file{name: "../../x", text: "x"}, `the name "../../x" leaves the folder`},
		"a link that leaves":          {file{name: "l", link: "/etc/passwd"}, `it is a link to "/etc/passwd", which leaves`},
		"an endless line":             {file{name: "kubelet.log", text: strings.Repeat("x", 3<<20)}, "1 lines were over 1048576 bytes long"},
		"bytes that are no text":      {file{name: "kubelet.log", text: "\x7fELF\x02\x01\x00\xff\xfe"}, "its bytes are no text and no profile"},
		"JSON that ends early":        {file{name: "pods.json", text: `{"kind":"PodList","items":[{"kind":"Pod"},{"kind":`}, "unexpected EOF"},
		"YAML that is none":           {file{name: "n.yaml", text: "kind: Node\nmetadata: {name: [\n"}, "yaml"},
		"a resource that is too long": {file{name: "n.yaml", text: "kind: Node\nx: " + strings.Repeat("y", 5<<20) + "\n"}, "a resource is over 4194304 bytes long"},
		"metrics that are cut":        {file{name: "m", text: "# TYPE a counter\na 1\nb{"}, "reading metrics"},
		"a profile that is none":      {file{name: "p", text: "\x0a\x04\x08\x01\x10\x02\xff\x00\x01"}, "no text and no profile"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, strings.NewReader(tarred(t, c.file, good)), "-")
			if i := of(t, r, "pleg-deadlock"); i.Word() != "met" {
				t.Errorf("beside it the incident is %s: %s", i.Word(), i.Why)
			}
			var all []string
			for _, p := range r.Problems {
				all = append(all, p.Path+": "+p.Message)
			}
			if !strings.Contains(strings.Join(all, "\n"), c.want) {
				t.Errorf("problems %q; want %q among them", all, c.want)
			}
		})
	}
}

// A dump that the runtime cut is named as such, and its silence is no answer.
func TestCutInMidLine(t *testing.T) {
	whole := kubelet("select", "select") + strings.Repeat("goroutine 500 [chan receive]:\nmain.f(0x1)\n\t/a.go:1 +0x1\n\n", 1)
	r := run(t, strings.NewReader(whole[:len(whole)-12]), "-")
	if got := r.Inputs[0].As; !strings.HasSuffix(got, "cut short") {
		t.Errorf("it was read as %q", got)
	}
	if i := of(t, r, "pleg-deadlock"); i.Word() != "unknown" || !strings.Contains(i.Why, "is cut short") {
		t.Errorf("it is %s: %s", i.Word(), i.Why)
	}
}

// logs gives n bytes of a kubelet's log, with a dump after each MiB.
type logs struct {
	left int
	rest []byte
	n    int
}

var usual = `I0301 10:00:00.000000    1234 reconciler_common.go:251] "operationExecutor.VerifyControllerAttachedVolume started for volume" ` +
	`volumeName="kube-api-access" pod="kube-system/coredns-5d78c9869d-abcde"` + "\n"

func (l *logs) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, io.EOF
	}
	if len(l.rest) == 0 {
		if l.n++; l.n%5000 == 0 {
			l.rest = []byte(fmt.Sprintf("goroutine %d [select]:\nk8s.io/kubernetes/cmd/kubelet/app.f%d(0x1)\n\t/server.go:1 +0x1\n\n", l.n, l.n))
		} else {
			l.rest = []byte(usual)
		}
	}
	n := copy(p, l.rest)
	l.rest, l.left = l.rest[n:], l.left-n
	return n, nil
}

// heapInUse is how much memory Go's heap takes.
func heapInUse() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64()
}

// However much is read, memory stays below 256 MiB: for logs, for resources and for what is unpacked.
func TestMemory(t *testing.T) {
	items := func(w io.Writer) {
		io.WriteString(w, `{"kind":"PodList","items":[`)
		for i := range 60_000 {
			fmt.Fprintf(w, `{"kind":"Pod","metadata":{"name":"p%d","annotations":{"a":"%s"}}},`, i, strings.Repeat("x", 900))
		}
		io.WriteString(w, `{"kind":"Pod"}]}`)
	}
	pr, pw := io.Pipe()
	go func() {
		items(pw)
		pw.Close()
	}()
	packed := gzipped(t, &logs{left: 96 << 20})
	runtime.GC() // of what other tests left
	before := heapInUse()
	for name, in := range map[string]io.Reader{"logs with dumps": &logs{left: 96 << 20}, "resources": pr, "a packed log": strings.NewReader(packed)} {
		t.Run(name, func(t *testing.T) {
			done, peak := make(chan struct{}), make(chan uint64)
			go func() {
				most := uint64(0)
				for {
					select {
					case <-done:
						peak <- most
						return
					case <-time.After(5 * time.Millisecond):
						most = max(most, heapInUse())
					}
				}
			}()
			r, err := match.Run(context.Background(), known(t), shipped(t), []string{"-"}, in)
			close(done)
			most := <-peak
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Inputs) != 1 {
				t.Errorf("inputs: %v", r.Inputs)
			}
			t.Logf("at most %d MiB, %d before", most>>20, before>>20)
			if most > 256<<20 {
				t.Errorf("it took %d MiB", most>>20)
			}
		})
	}
}

// FuzzRun holds match to its contract on any input: it ends, doesn't panic, names what it read, and finds nothing in
// what has no goroutine, no panic and none of the incidents' words.
func FuzzRun(f *testing.F) {
	f.Add([]byte(kubelet("chan send, 3 minutes", "sleep")))
	f.Add([]byte(overdue + kubelet("chan send", "sleep")[:90]))
	f.Add([]byte(fmt.Sprintf(panicText, "v1.26.1", "CSILimits")))
	f.Add([]byte(node("v1.13.5", "False", "PLEG is not healthy")))
	f.Add([]byte(`{"kind":"PodList","items":[{"metadata":{"name":"p"},"status":{"containerStatuses":[{"name":"kubelet","restartCount":3}]}}]}`))
	f.Add([]byte("# TYPE workqueue_longest_running_processor_seconds gauge\nworkqueue_longest_running_processor_seconds{name=\"service\"} 312\n"))
	f.Add([]byte(`{"__REALTIME_TIMESTAMP":"1772359200000000","SYSLOG_IDENTIFIER":"kubelet","MESSAGE":"x"}` + "\n"))
	f.Add([]byte(exportForm("kubelet", "x", "goroutine 1 [select]:\nmain.main()\n\t/a.go:1 +0x1\n")))
	f.Add([]byte("kind: List\nitems:\n- kind: Node\n  metadata:\n    name: n\n- kind: Pod\n"))
	f.Add([]byte(real(f, "../../internal/checktest/testdata/yielding.cpu.pb.gz")))
	all, well := known(f), shipped(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := match.Run(context.Background(), all, well, []string{"-"}, bytes.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
		for _, i := range r.Inputs {
			if !strings.HasPrefix(i.Path, "stdin") {
				t.Errorf("it read %q", i.Path)
			}
		}
		for _, i := range r.Incidents {
			if i.Word() == "met" && !bytes.Contains(in, []byte("goroutine ")) && !bytes.HasPrefix(in, []byte("\x1f\x8b")) &&
				!bytes.HasPrefix(in, []byte("PK")) && !bytes.HasPrefix(in, []byte("\x28\xb5")) && !bytes.HasPrefix(in, []byte("\xfd7z")) &&
				!bytes.HasPrefix(in, []byte("BZh")) {
				t.Errorf("%s is met: %s", i.Name, i.Why)
			}
		}
	})
}

// What grep finds in a dump are hundreds of small dumps, each of which is asked by itself. The CPU time that this takes grew
// as the cube of the text, and was 13 seconds for 26 KiB.
func TestManyPartsOfOneDump(t *testing.T) {
	part, err := os.ReadFile("testdata/cases/healthy-etcd-grep-n/out.txt")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for n := range 32 {
		text.WriteString(strings.ReplaceAll(string(part), "goroutine ", fmt.Sprintf("goroutine %d", n+1)) + "\n--\n")
	}
	dir := files(t, map[string]string{"out.txt": text.String()})
	known(t) // so that reading the scenarios isn't counted
	began := cpuTime(syscall.RUSAGE_SELF)
	r := run(t, nil, dir)
	if took := cpuTime(syscall.RUSAGE_SELF) - began; took > 20*time.Second { // 0.8 s without the race detector
		t.Errorf("%d KiB took %s of CPU time", text.Len()>>10, took)
	}
	if r.Answer != match.Unknown {
		t.Errorf("it is %s", r.Answer)
	}
}
