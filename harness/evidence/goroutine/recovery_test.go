package goroutine_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// recoveredLog is kube-apiserver v1.36.3's, without the lock under which an audit event is encoded: two panics that its
// time limit's handler recovered from.
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

// printed is a panic that a handler printed in the runtime's words; inJSON is one in a line of a log that is JSON.
const (
	printed = "panic: runtime error: index out of range [7] with length 7\ngoroutine 77 [running]:\npanic({0x1, 0x2})\n\t/usr/local/go/src/runtime/panic.go:1 +0x1\n" +
		"encoding/json.mapEncoder.encode({0x1})\n\t/usr/local/go/src/encoding/json/encode.go:1 +0x1\n"
	inJSON = `{"ts":1764000000000.1,"msg":"Observed a panic","panic":"runtime error: index out of range [7] with length 7","stacktrace":"goroutine 77 [running]:\npanic({0x1, 0x2})` +
		`\n\t/usr/local/go/src/runtime/panic.go:1 +0x1\nencoding/json.mapEncoder.encode({0x1})\n\t/usr/local/go/src/encoding/json/encode.go:1 +0x1\n"}`
)

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
		{"behind a line that is like the last words", "panic: in a handler, recovered from: context canceled\n" + whole, 2, false},
		{"behind a stack that is like the last words'", "panic: x\n\ngoroutine 5 [running]:\npanic(0x1)\n\t/src/panic.go:1 +0x1\nx.f()\n\t/src/x.go:1 +0x1\n" + whole, 3, false},
		{"printed as the runtime does, and the log goes on", printed + strings.Repeat("I1125 10:00:00.000000 1 x.go:1] on we go\n", 30), 1, false},
		{"printed as the runtime does, and a line follows", printed + "I1125 10:00:00.000000 1 x.go:1] on we go\n", 0, true},
		{"printed as the runtime does, and nothing follows", printed, 0, false},
		{"before two threads' last words", plainRecovery + "\nfatal error: x\nfatal error: y\n\ngoroutine 9 [running]:\npanic(0x1)\n\t/src/panic.go:1 +0x1\n", 1, false},
		{"a line of JSON", inJSON, 1, false},
		{"a line of JSON that was cut", inJSON[:200], 0, true},
		{"a line of JSON whose stack was cut", strings.Replace(inJSON, `\n\t/usr/local/go/src/encoding/json/encode.go:1 +0x1\n"`, `"`, 1), 1, true},
		{"between quotes", `E1125 10:00:00.000000 1 x.go:1] "Observed a panic" stack="goroutine 7 [running]:\npanic(0x1)\n\t/src/panic.go:1 +0x1\nx.f()\n\t/src/x.go:1 +0x1\n"`, 1, false},
		{"the same before each line", "stderr: " + strings.ReplaceAll(plainRecovery, "\n", "\nstderr: "), 1, false},
		{"behind the header of its entry", strings.Replace(plainRecovery, "\ngoroutine 7", " goroutine 7", 1), 1, false},
		{"something like a stack", "I1125 10:00:00.000000 1 x.go:1] goroutine 7 [running]: x.f()", 0, true},
		{"a stack without frames", "goroutine 7 [running]:\nI1125 10:00:00.000000 1 x.go:1] on we go", 0, true},
		{"nothing", "", 0, false},
	} {
		found, cut := goroutine.Recoveries(strings.Split(tc.text, "\n"))
		if len(found) != tc.n || cut != tc.cut {
			t.Errorf("%s: %d panics, cut %v; want %d, %v", tc.name, len(found), cut, tc.n, tc.cut)
		}
	}
}

// What a panic said is found wherever its stack is.
func TestRecoveriesSayWhatPanicked(t *testing.T) {
	for _, text := range []string{printed + strings.Repeat("I1125 10:00:00.000000 1 x.go:1] on we go\n", 30), inJSON} {
		found, _ := goroutine.Recoveries(strings.Split(text, "\n"))
		if len(found) != 1 || !strings.Contains(found[0].Message, "index out of range [7]") || found[0].At().Frames[0].Func != "encoding/json.mapEncoder.encode" {
			t.Errorf("%+v of:\n%s", found, text)
		}
	}
}

func TestLastWords(t *testing.T) {
	const stack = "\n\ngoroutine 9 [running]:\nx.f()\n\t/src/x.go:1 +0x1\n"
	goesOn := strings.Repeat("I1125 10:00:00.000000 1 x.go:1] goes on\n", 30)
	for _, tc := range []struct{ name, text, want string }{
		{"none", goesOn, ""},
		{"a stack", goesOn + "panic: a" + stack, "panic: a"},
		{"without a stack", goesOn + "panic: a\n", "panic: a"},
		{"other threads log meanwhile", "panic: a" + stack + goesOn[:len(goesOn)/3], "panic: a"},
		{"a line of what it lived through", "panic: a\n" + goesOn + "fatal error: b" + stack, "fatal error: b"},
		{"a stack of what it lived through", "panic: a" + stack + goesOn + "fatal error: b" + stack, "fatal error: b"},
		{"what it lived through, and no end", "panic: a\n" + goesOn, ""},
		{"an end, and the next process's log", "panic: a" + stack + goesOn, "panic: a"},
		{"two threads at once", "fatal error: a\nfatal error: b" + stack, "fatal error: a"},
		{"another thread's within the stack", "fatal error: a\n\ngoroutine 9 [running]:\nx.f()\nfatal error: b\n\t/src/x.go:1 +0x1\n", "fatal error: a"},
		{"a handler's, by debug.Stack", "panic: a\ngoroutine 9 [running]:\nruntime/debug.Stack()\n\t/stack.go:26 +0x5e\nx.f()\n\t/src/x.go:1 +0x1\n", ""},
		{"a handler's, by runtime.Stack", "panic: a\n\ngoroutine 9 [running]:\nx.handle()\n\t/src/x.go:9 +0x1\npanic({0x1, 0x2})\n\t/panic.go:1 +0x1\nx.f()\n\t/src/x.go:1 +0x1\n" + goesOn, ""},
		{"a handler panics anew", "panic: a [recovered]\n\tpanic: a\n\ngoroutine 9 [running]:\nx.handle()\n\t/src/x.go:9 +0x1\npanic({0x1, 0x2})\n\t/panic.go:1 +0x1\nx.f()\n\t/src/x.go:1 +0x1\n", "panic: a [recovered]"},
		{"an old runtime's own call of panic", "panic: a\n\ngoroutine 9 [running]:\npanic(0x1, 0x2)\n\t/panic.go:500 +0x1\nx.f()\n\t/src/x.go:1 +0x1\n", "panic: a"},
		{"with registers", "panic: a" + stack + strings.Repeat("\nrax    0x1", 30), "panic: a"},
	} {
		lines, got := strings.Split(tc.text, "\n"), ""
		if at := goroutine.LastWords(lines); at >= 0 {
			got = lines[at]
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
