package match_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/match"
)

// real reads evidence that real programs left. The builds of dynamiclistener v0.3.5 that spin had its fix taken out.
func real(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".txt.gz") {
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if b, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(path, "spinning") || strings.Contains(path, "runnable") {
		b = bytes.ReplaceAll(b, []byte("@v0.3.5/"), []byte("@v0.3.3/"))
	}
	return string(b)
}

// manager is a dump of a cloud-controller-manager with a worker in this state.
func manager(state string) string {
	return fmt.Sprintf("goroutine 1 [select]:\nk8s.io/cloud-provider/app.Run(0x1)\n\t/app.go:1 +0x1\nmain.main()\n\tmain.go:1 +0x1\n\ngoroutine 88 [%s]:\n"+
		"net/http.(*persistConn).roundTrip(0x1)\n\t/transport.go:2 +0x1\ngithub.com/gophercloud/gophercloud/v2.(*ProviderClient).Request(0x1)\n\t/p.go:3 +0x1\n"+
		"k8s.io/cloud-provider/controllers/service.(*Controller).serviceWorker(0x1)\n\t/controller.go:4 +0x1\n\n", state)
}

const mapPanic = `I0301 10:00:00.000000       1 server.go:147] Version: %s
fatal error: concurrent map iteration and map write

goroutine 3120 [running]:
internal/runtime/maps.fatal({0x1?, 0x1?})
	runtime/panic.go:1058 +0x18
internal/runtime/maps.(*Iter).Next(0x1)
	internal/runtime/maps/table.go:683 +0x86
encoding/json.mapEncoder.encode({0x1}, 0x1)
	encoding/json/encode.go:783 +0x1
k8s.io/apiserver/plugin/pkg/audit/%s.(*backend).logEvent(0x1)
	k8s.io/apiserver@v0.33.13/plugin/pkg/audit/log/backend.go:76 +0x1
`

// later is a goroutine that a second dump of a process has: what takes it.
const later = "\ngoroutine 9999 [select]:\nmain.later()\n\t/m.go:1 +0x1\n"

func TestLabelled(t *testing.T) {
	const listener, crash, workers = "listener-busy-wait", "concurrent-map-crash", "service-workers-stuck"
	spinning, sleeping := real(t, "../../internal/checktest/testdata/spinning.debug2"), real(t, "../../internal/checktest/testdata/sleeping.debug2")
	abort := real(t, "../evidence/goroutine/testdata/abort-runnable.txt.gz")
	atRest := real(t, "../evidence/goroutine/testdata/abort-sleeping.txt.gz")
	yields, rests := real(t, "../../internal/checktest/testdata/yielding.cpu.pb.gz"), real(t, "../../internal/checktest/testdata/resting.cpu.pb.gz")
	for _, c := range []struct {
		name, incident string
		files          map[string]string
		want, why      string
	}{
		{"a loop in one dump", listener, map[string]string{"a": spinning}, "suspected", "ready-in-the-loop"},
		{"in two of one process, a minute apart", listener, map[string]string{"a": spinning, "b": spinning + later}, "met", "same-goroutine-always-ready: 2 of 2 dumps show it, in a row over 1m0s"},
		{"then it sleeps", listener, map[string]string{"a": spinning, "b": sleeping}, "suspected", "ready-in-the-loop"},
		{"a build with the fix", listener, map[string]string{"a": sleeping}, "not met", "the fix is in v0.3.4 and later; this is v0.3.5"},
		{"a dump and a profile", listener, map[string]string{"a": spinning, "p": yields}, "met", "yields-all-the-time"},
		{"a profile alone", listener, map[string]string{"p": yields}, "unknown", ""},
		{"a process at rest", listener, map[string]string{"a": sleeping, "p": rests}, "not met", "v0.3.5"},
		{"what an abort left", listener, map[string]string{"listener.log": abort}, "suspected", "ready-in-the-loop"},
		{"what an abort left of a build with the fix", listener, map[string]string{"listener.log": atRest}, "not met", "v0.3.5"},
		{"the crash", crash, map[string]string{"kube-apiserver/0.log": fmt.Sprintf(mapPanic, "v1.33.13", "log")}, "met", "died-of-it: 1 of 1 logs"},
		{"another map's", crash, map[string]string{"kube-apiserver/0.log": fmt.Sprintf(mapPanic, "v1.33.13", "other")}, "suspected", "says-concurrent-map"},
		{"in a version with the lock", crash, map[string]string{"kube-apiserver/0.log": fmt.Sprintf(mapPanic, "v1.34.4", "log")}, "suspected", "a regression, another bug"},
		{"a version with the lock", crash, map[string]string{"kube-apiserver/0.log": strings.SplitAfter(fmt.Sprintf(mapPanic, "v1.34.4", ""), "\n")[0] + fineLine + "\n"}, "not met", "this is v1.34.4"},
		{"workers that wait for minutes", workers, map[string]string{"a": manager("select, 3 minutes")}, "met", "worker-waits-for-minutes"},
		{"workers that wait", workers, map[string]string{"a": manager("select")}, "suspected", "worker-waits"},
		{"no worker waits", workers, map[string]string{"a": strings.SplitAfter(manager(""), "\n\n")[0]}, "unknown", "may be a part of a dump"},
		{"metrics alone", workers, map[string]string{"cloud-controller-manager.txt": "# TYPE workqueue_longest_running_processor_seconds gauge\n" +
			"workqueue_longest_running_processor_seconds{name=\"service\"} 312\n"}, "suspected", "longest-work-takes-minutes"},
		{"metrics of a manager at rest", workers, map[string]string{"cloud-controller-manager.txt": "# TYPE workqueue_longest_running_processor_seconds gauge\n" +
			"workqueue_longest_running_processor_seconds{name=\"service\"} 0\n"}, "unknown", "no goroutine dump at debug=2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := files(t, c.files)
			began := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
			for name := range c.files { // a is older than b
				at := began.Add(time.Duration(name[0]-'a') * time.Minute)
				if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
					t.Fatal(err)
				}
			}
			answered(t, run(t, nil, dir), c.incident, c.want, c.why)
		})
	}
}

// answered holds a result to the answer about one incident, and no other may be met.
func answered(t testing.TB, r match.Result, name, want, why string) {
	t.Helper()
	i := of(t, r, name)
	if i.Word() != want || !strings.Contains(i.Why, why) {
		t.Errorf("it is %s: %s; want %s: %s\n%+v", i.Word(), i.Why, want, why, i.Subjects)
	}
	if (i.Word() == "unknown" || i.Word() == "suspected") && i.Settle == "" {
		t.Error("no command is named that would settle it")
	}
	for _, other := range r.Incidents {
		if other.Name != name && other.Word() == "met" {
			t.Errorf("%s is met, too: %s", other.Name, other.Why)
		}
	}
}

// Two dumps are of one process if its heap is in one place and no goroutine's id is another's.
func TestProcesses(t *testing.T) {
	spinning := real(t, "../../internal/checktest/testdata/spinning.debug2")
	for name, second := range map[string]string{
		"its heap is elsewhere": strings.ReplaceAll(spinning, "0x10e9", "0x20e9"),
		"an id was given twice": strings.NewReplacer("goroutine 22 [", "goroutine 273 [", "goroutine 273 [", "goroutine 22 [").Replace(spinning),
	} {
		t.Run(name, func(t *testing.T) {
			dir := files(t, map[string]string{"a": spinning, "b": second})
			if err := os.Chtimes(filepath.Join(dir, "a"), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
			answered(t, run(t, nil, dir), "listener-busy-wait", "suspected", "ready-in-the-loop")
		})
	}
}
