package build_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/mutate"
)

const constantsSource = `package pleg

import (
	"time"
	tm "time"

	"example.org/tiny/v1"
)

const (
	Capacity  = 1000
	threshold = time.Minute * 3
	renamed   = 2 * tm.Second
	half      = whole / 2
	mixed     = 1.5 * 2
	typed     time.Duration = 5
	converted = time.Duration(thousand) * time.Millisecond
	negative  = -(1 << 4) + 7%4
	integer   = int64(7) / 2
)

const (
	first = iota * 10
	second
	third
)

const (
	fraction = 0.5
	text     = "text"
	foreign  = v1.Max
	circular = circular2 + 1
	zero     = 1 / (thousand - 1000)
	missing  = nowhere
)

const circular2, whole, thousand = circular, 3 * time.Minute, 1000

var variable = 3

var used = []any{Capacity, threshold, renamed, half, mixed, typed, converted, negative, integer, third, fraction, perOS}
`

func constantsModule() mutate.Module {
	return mutate.Module{Path: "example.org/tiny", Version: "v1.2.3", FS: fstest.MapFS{
		"pleg/pleg.go":          {Data: []byte(constantsSource)},
		"pleg/pleg_test.go":     {Data: []byte("package pleg\n\nconst Capacity = 1\n")},
		"pleg/os_windows.go":    {Data: []byte("package pleg\n\nconst perOS = 1\n")},
		"pleg/os_linux.go":      {Data: []byte("package pleg\n\nconst perOS = 2\n")},
		"pleg/tagged_ignore.go": {Data: []byte("//go:build ignore\n\npackage pleg\n\nconst perOS = 3\n")},
	}}
}

func ref(ident string) []build.ConstantRef {
	return []build.ConstantRef{{Name: "c", Package: "example.org/tiny/pleg", Ident: ident}}
}

func TestConstantsAreEvaluated(t *testing.T) {
	for ident, want := range map[string]struct {
		n        int64
		duration time.Duration
	}{
		"Capacity": {1000, 0}, "threshold": {int64(3 * time.Minute), 3 * time.Minute}, "renamed": {2e9, 2 * time.Second},
		"half": {9e10, 90 * time.Second}, "mixed": {3, 0}, "typed": {5, 5}, "converted": {1e9, time.Second},
		"negative": {-13, 0}, "integer": {3, 0}, "third": {20, 0}, "perOS": {2, 0},
	} {
		t.Run(ident, func(t *testing.T) {
			got, err := build.ReadConstants(constantsModule(), nil, ref(ident))
			if err != nil {
				t.Fatal(err)
			}
			if got["c"].Int != want.n || got["c"].Duration != want.duration {
				t.Errorf("%+v, want %d and %s", got["c"], want.n, want.duration)
			}
		})
	}
}

// The numbers are those of the mutated source, with the place and expression for the report.
func TestConstantsOfAMutatedSource(t *testing.T) {
	got, err := build.ReadConstants(constantsModule(), []mutate.Mutation{capacity40}, ref("Capacity"))
	if err != nil {
		t.Fatal(err)
	}
	want := build.Constant{Name: "c", Package: "example.org/tiny/pleg", Ident: "Capacity", Expr: "40", Int: 40, File: "pleg/pleg.go", Line: 11}
	if diff := cmp.Diff(want, got["c"]); diff != "" {
		t.Errorf("constant (-want +got):\n%s", diff)
	}
}

func TestConstantsThatCannotBeRead(t *testing.T) {
	for ident, want := range map[string]string{
		"nowhere":  "constant nowhere of example.org/tiny@v1.2.3, package example.org/tiny/pleg: no constant nowhere",
		"variable": "variable is a variable at pleg/pleg.go:39:5",
		"fraction": "0.5 is 0.5, not an integer of 64 bits",
		"text":     `text = "text": "text": not an expression that can be evaluated here`,
		"foreign":  "foreign = v1.Max: v1.Max: not an expression that can be evaluated here",
		"circular": "circular refers to itself",
		"zero":     "divides by zero",
		"missing":  "missing = nowhere: no constant nowhere",
	} {
		t.Run(ident, func(t *testing.T) {
			if got, err := build.ReadConstants(constantsModule(), nil, ref(ident)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %+v, error %v\nwant %s", got, err, want)
			}
		})
	}
}
