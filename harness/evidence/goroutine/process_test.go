package goroutine_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// stack is a goroutine of a dump: its stack's functions, innermost first, and its creator.
func stack(id, state, creator string, functions ...string) string {
	var b strings.Builder
	b.WriteString("goroutine " + id + " [" + state + "]:\n")
	for _, f := range functions {
		b.WriteString(f + "\n\t/src/a.go:1 +0x1\n")
	}
	if creator != "" {
		b.WriteString("created by " + creator + " in goroutine 1\n\t/src/a.go:9 +0x1\n")
	}
	return b.String() + "\n"
}

// Two looks at one goroutine may show different functions at its outer end, and still it is the same.
func TestGoroutinesOfOneProcess(t *testing.T) {
	ran := stack("7", "select", "a.New", "a.wait(0x1)", "a.(*Loop).run(0xc000123450)")
	for _, c := range []struct {
		name, one, other string
		differs          string // "" if they may be of one process
	}{
		{"it waits elsewhere", ran, stack("7", "chan receive", "a.New", "a.take()", "a.(*Loop).run(0xc000123450)"), ""},
		{"it had not run yet", stack("7", "runnable", "a.New", "a.New.gowrap1()"), ran, ""},
		{"it had not run yet, and its wrapper has a plain name", stack("7", "runnable", "a.New", "a.New.func1()"), ran, ""},
		{"it was on its way through the wrapper", stack("7", "GC assist wait", "a.New", "a.New.gowrap12()"), ran, ""},
		{"it is a method value", stack("7", "runnable", "a.New", "a.(*Loop).run-fm()"), ran, ""},
		{"only the runtime's end is left of it", stack("7", "runnable", "a.New", "runtime.goexit({})"), ran, ""},
		{"the runtime shows its own functions, too", stack("7", "select", "a.New", "runtime.gopark(0x1)", "a.wait(0x1)", "a.(*Loop).run(0xc000123450)", "runtime.goexit({})"), ran, ""},
		{"the outer end of its stack is left out", "goroutine 7 [select]:\na.wait(0x1)\n\t/src/a.go:1 +0x1\n...additional frames elided...\ncreated by a.New in goroutine 1\n\t/src/a.go:9 +0x1\n\n", ran, ""},
		{"its creator is cut off", stack("7", "select", "", "a.wait(0x1)", "a.(*Loop).run(0xc000123450)"), ran, ""},
		{"it began with another function", stack("7", "select", "a.New", "a.wait(0x1)", "a.(*Other).run(0x1)"), ran,
			"goroutine 7 was a.(*Other).run, created by a.New, and is a.(*Loop).run, created by a.New in the other"},
		{"another function made it", stack("7", "runnable", "b.New", "b.New.gowrap1()"), ran,
			"goroutine 7 was a function that isn't known, created by b.New, and is a.(*Loop).run, created by a.New in the other"},
		{"its heap is elsewhere", stack("7", "select", "a.New", "a.wait(0x1)", "a.(*Loop).run(0x3f1200123450)"), ran, "the heap lies at 0x3f1200000000, and in the other at 0xc000000000"},
		{"a number looks like an address", stack("7", "select", "a.New", "a.wait(0x1f4a00000000, 0xc000123450)", "a.(*Loop).run(0x2540be400)"), ran, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, err := goroutine.Read(strings.NewReader(c.one))
			if err != nil {
				t.Fatal(err)
			}
			other, err := goroutine.Read(strings.NewReader(c.other))
			if err != nil {
				t.Fatal(err)
			}
			if n, differs := one.InCommon(other); n != 1 || differs != c.differs {
				t.Errorf("%d in common, %q; want 1 and %q", n, differs, c.differs)
			}
			if n, differs := other.InCommon(one); n != 1 || (differs == "") != (c.differs == "") {
				t.Errorf("the other way round: %d in common, %q", n, differs)
			}
		})
	}
}
