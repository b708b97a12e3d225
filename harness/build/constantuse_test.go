package build_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/mutate"
)

// A constant is known only where the source uses it as it is: whatever is between its declaration and what the program
// does makes it unknown.
func TestAConstantChangedWhereItIsUsedIsNotKnown(t *testing.T) {
	const kubelet = "type durations struct{ RelistThreshold, threshold time.Duration }\n\nfunc take(...any) {}\n\n"
	for _, tc := range []struct{ name, uses, want string }{
		{"an argument", "var ch = make(chan int, threshold)", ""},
		{"an element of a composite", "var d = durations{RelistThreshold: threshold}", ""},
		{"one without its key", "var d = durations{threshold, 0}", ""},
		{"compared", "func long(d time.Duration) bool { return d > threshold }", ""},
		{"converted", "var ch = make(chan int, int64((threshold)))", ""},
		{"an argument of another package's function", "func f() { println2 := strings.Repeat; _ = println2; time.After(threshold) }", ""},
		{"a field that is given nothing else", "func f(d durations) { d.RelistThreshold = threshold }", ""},
		{"a variable of its own", "func f() { d := threshold; time.After(d) }", ""},
		{"an alias", "const alias = threshold\n\nfunc f() { time.After(alias) }", ""},
		{"a function of the package that passes it on", "func wait(d time.Duration) { time.After(d) }\n\nfunc f() { wait(threshold) }", ""},
		{"a field and a method of its name", "func (d durations) x() { time.After(d.threshold) }\n\nvar d = durations{threshold: 1, RelistThreshold: threshold}", ""},

		{"multiplied", "var ch = make(chan int, threshold*5)", "pleg/use.go:9:25: threshold * 5 is not the constant as it is declared, so its effect is not known"},
		{"multiplied in a composite", "var d = durations{RelistThreshold: threshold * 10}", "pleg/use.go:9:36: threshold * 10 is not the constant"},
		{"multiplied after a conversion", "var d = time.Duration(threshold) * 2", "time.Duration(threshold) * 2 is not"},
		{"negated", "var d = -threshold", "-threshold is not"},
		{"the larger of two", "var d = max(threshold, time.Hour)", "max(threshold, time.Hour) is not"},
		{"a variable that is changed", "func f() { d := threshold; d *= 5; time.After(d) }", "d *= 5 is not"},
		{"a variable that is given another value", "func f() { d := threshold; d, err := 5, 6; take(d, err) }", "d, err := 5, 6 is not"},
		{"a variable whose address is taken", "func f() { d := threshold; take(&d) }", "&d is not"},
		{"an alias that is changed", "var alias = threshold\n\nfunc f() { time.After(alias / 2) }", "alias / 2 is not"},
		{"a function of the package that changes it", "func wait(d time.Duration) { time.After(d * 10) }\n\nfunc f() { wait(threshold) }", "d * 10 is not"},
		{"a function of the package that can't be followed", "func f() { take(threshold) }", "take(threshold) is not"},
		{"a function's result", "func f() { time.After(scale.By(threshold)) }", "time.After(scale.By(threshold)) is not"},
		{"returned", "func f() time.Duration { return threshold }", "return threshold is not"},
		{"a field that is changed later", "var d = durations{RelistThreshold: threshold}\n\nfunc f() { d.RelistThreshold *= 10 }", "d.RelistThreshold *= 10 is not"},
		{"a field that something else is given", "func f(d durations) { d.RelistThreshold = threshold; d.RelistThreshold = time.Hour }", "d.RelistThreshold = time.Hour is not"},
		{"shadowed", "func f() { threshold := time.Hour; time.After(threshold) }", "threshold := time.Hour is not"},
		{"shadowed by a parameter", "func f(threshold time.Duration) { time.After(threshold) }", "pleg/use.go:9:8: threshold is not the constant as it is declared"},
		{"one use of two", "func f() { time.After(threshold); time.After(threshold << 1) }", "threshold << 1 is not"},
		{"never used", "var ch = make(chan int, 5000)", "threshold is never used in its package, so what stands in its place is not known"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mod := mutate.Module{Path: "example.org/tiny", Version: "v1.2.3", FS: fstest.MapFS{
				"pleg/pleg.go": {Data: []byte("package pleg\n\nimport \"time\"\n\nconst threshold = 3 * time.Minute\n")},
				"pleg/use.go":  {Data: []byte("package pleg\n\nimport \"time\"\n\n" + kubelet + tc.uses + "\n")},
				// Tests are no part of the program.
				"pleg/use_test.go": {Data: []byte("package pleg\n\nvar half = threshold / 2\n")},
			}}
			got, err := build.ReadConstants(mod, nil, ref("threshold"))
			switch {
			case tc.want == "" && (err != nil || got["c"].Int != 18e10):
				t.Errorf("got %+v, %v, want 3m", got, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %+v, %v\nwant %s", got, err, tc.want)
			}
		})
	}
}

// What a mutation adds to the package uses its constants as well.
func TestAConstantIsLookedForInAddedFiles(t *testing.T) {
	mod := mutate.Module{Path: "example.org/tiny", Version: "v1.2.3", FS: fstest.MapFS{
		"pleg/pleg.go": {Data: []byte("package pleg\n\nconst capacity = 1000\n\nvar ch = make(chan int, capacity)\n")},
	}}
	add := mutate.Mutation{Kind: "addFile", Sites: 1,
		Spec: json.RawMessage(`{"package":"example.org/tiny/pleg","name":"more.go","content":"package pleg\n\nvar more = make(chan int, capacity+1)\n"}`)}
	_, err := build.ReadConstants(mod, []mutate.Mutation{add}, ref("capacity"))
	if want := "pleg/more.go:3:27: capacity + 1 is not the constant as it is declared"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
