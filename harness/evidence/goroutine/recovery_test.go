package goroutine_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// recoveredLog is kube-apiserver v1.36.3's, without the lock under which an audit event is encoded: two panics that its time limit's handler recovered from.
func recoveredLog(t testing.TB) []string {
	return strings.Split(strings.TrimSuffix(fixture(t, "recovered.log"), "\n"), "\n")
}

const plainRecovery = `E0301 10:00:00.000000       1 wrap.go:58] apiserver panic'd on GET /api
goroutine 7 [running]:
k8s.io/apiserver/pkg/server/filters.WithPanicRecovery.func1.1()
	/src/wrap.go:58 +0x1
panic({0x1, 0x2})
	/usr/local/go/src/runtime/panic.go:1 +0x1
k8s.io/x.(*Cache).Get(0x1)
	/src/x.go:1 +0x1
created by k8s.io/x.start in goroutine 5
	/src/x.go:9 +0x1
I0301 10:00:01.000000       1 x.go:1] "Goes on"`

func TestRecoveries(t *testing.T) {
	real := recoveredLog(t)
	found, cut := goroutine.Recoveries(real)
	if len(found) != 2 || cut {
		t.Fatalf("%d panics, cut %v; want 2 whole ones", len(found), cut)
	}
	for _, r := range found {
		at := r.At()
		if !strings.HasPrefix(real[r.First], "\tgoroutine ") || !strings.Contains(r.Message, "timeout.go:140] \"Post-timeout activity\"") ||
			!strings.HasSuffix(r.Message, "index out of range [16010] with length 16010") {
			t.Errorf("line %d, message %q", r.First, r.Message)
		}
		if at.Frames[0].Func != "encoding/json.mapEncoder.encode" || !(goroutine.Match{Func: "log.(*backend).logEvent"}).Chooses(at) {
			t.Errorf("it panicked in %+v", at.Frames[0])
		}
		if r.Frames[0].Func != "k8s.io/apiserver/pkg/server/filters.(*timeoutHandler).ServeHTTP.func1.1" || r.State != "running" {
			t.Errorf("its handler is %+v, %s", r.Frames[0], r.State)
		}
	}

	whole := strings.Join(real, "\n")
	for _, tc := range []struct {
		name, text string
		n          int
		cut        bool
	}{
		{"as it is, without klog's indent", plainRecovery, 1, false},
		{"locked to its thread", strings.Replace(plainRecovery, "[running]", "[running, locked to thread]", 1), 1, false},
		{"cut before its end", strings.Join(real[:40], "\n"), 0, true},
		{"another line in the middle", strings.Join(append(append(append([]string{}, real[:40]...), "I1125 01:15:54.234734   30045 x.go:1] y"), real[40:92]...), "\n"), 0, true},
		{"a stack without a panic", strings.ReplaceAll(whole, "\tpanic({", "\tx.f({"), 0, false},
		{"the runtime's own last words", "panic: x [recovered]\n\tpanic: x\n\ngoroutine 7 [running]:\npanic({0x1, 0x2})\n\t/src/panic.go:1 +0x1\nk8s.io/x.f(0x1)\n\t/src/x.go:1 +0x1\n", 0, false},
		{"logged before the last words", plainRecovery + "\nfatal error: x\n\ngoroutine 9 [running]:\npanic(0x1)\n\t/src/panic.go:1 +0x1\n", 1, false},
		{"nothing", "", 0, false},
	} {
		found, cut := goroutine.Recoveries(strings.Split(tc.text, "\n"))
		if len(found) != tc.n || cut != tc.cut {
			t.Errorf("%s: %d panics, cut %v; want %d, %v", tc.name, len(found), cut, tc.n, tc.cut)
		}
	}
}
