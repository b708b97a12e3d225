package kinds_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// shaker is a category's type, and quake a kind of it.
type shaker interface{ Shake() int }

type quake struct {
	Strength int `json:"strength"`
}

func (q *quake) Shake() int { return q.Strength }

func init() {
	kinds.Register(kinds.Load, kinds.Kind[shaker]{Name: "quake", Doc: "Shakes.", Example: "kind: quake\n", New: func() shaker { return &quake{5} }})
	kinds.Register(kinds.Load, kinds.Kind[shaker]{Name: "aftershock", Doc: "Shakes again.", New: func() shaker { return &quake{1} }})
}

func TestRegisteredKindsAreFound(t *testing.T) {
	var names []string
	for _, e := range kinds.Of(kinds.Load) {
		names = append(names, e.Name)
	}
	if got := strings.Join(names, " "); got != "aftershock quake" {
		t.Errorf("the loads are %q, want them sorted", got)
	}
	e, ok := kinds.Lookup(kinds.Load, "quake")
	if !ok || e.Category != kinds.Load || e.Doc != "Shakes." || e.Example != "kind: quake\n" || e.New().(shaker).Shake() != 5 {
		t.Errorf("looked up, it is %+v, %v", e, ok)
	}
	if _, ok := kinds.Lookup(kinds.Fault, "quake"); ok {
		t.Error("a load is found among the faults")
	}
	if got := kinds.Of(kinds.Fault); len(got) > 0 {
		t.Errorf("a category without kinds has %v", got)
	}
}

// What is decoded lies over defaults of its own: one item's spec is no other's.
func TestDecode(t *testing.T) {
	for _, tc := range []struct {
		spec string
		want int
	}{{"", 5}, {"{}", 5}, {`{"strength":9}`, 9}, {"", 5}} {
		v, err := kinds.Decode[shaker](kinds.Load, "quake", json.RawMessage(tc.spec))
		if err != nil || v.Shake() != tc.want {
			t.Errorf("%q gives %v, %v, want %d", tc.spec, v, err, tc.want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, tc := range []struct {
		decode func() error
		want   string
	}{
		{func() error { _, err := kinds.Decode[shaker](kinds.Load, "flood", nil); return err }, `unknown load kind "flood": want one of ["aftershock" "quake"]`},
		{func() error {
			_, err := kinds.Decode[shaker](kinds.Load, "quake", json.RawMessage(`{"strength":"x"}`))
			return err
		}, `decoding the spec of load kind "quake": json: cannot unmarshal string`},
		{func() error {
			_, err := kinds.Decode[shaker](kinds.Load, "quake", json.RawMessage(`{"strength":9,"depth":4}`))
			return err
		}, `decoding the spec of load kind "quake": json: unknown field "depth"`},
		{func() error {
			_, err := kinds.Decode[shaker](kinds.Load, "quake", json.RawMessage(`{"strength":9}{}`))
			return err
		}, `decoding the spec of load kind "quake": there is more behind its end`},
		{func() error { _, err := kinds.Make[shaker](kinds.Seam, "etcd"); return err },
			"no kind of category seam is registered: import github.com/kube-relapse/relapse/scenarios"},
		{func() error { _, err := kinds.Make[fmt.Stringer](kinds.Load, "quake"); return err }, `load kind "quake" is a *kinds_test.quake, not a`},
	} {
		if err := tc.decode(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
}

// A registration that can't be right stops every binary at its start.
func TestRegisterPanics(t *testing.T) {
	fine := func() shaker { return &quake{} }
	for _, tc := range []struct {
		category string
		kind     kinds.Kind[shaker]
		want     string
	}{
		{"dance", kinds.Kind[shaker]{Name: "x", Doc: "X.", New: fine}, `kinds: unknown category "dance"`},
		{kinds.Load, kinds.Kind[shaker]{Doc: "X.", New: fine}, `kinds: load "" needs a name, a doc and a constructor`},
		{kinds.Load, kinds.Kind[shaker]{Name: "x", New: fine}, `kinds: load "x" needs a name, a doc and a constructor`},
		{kinds.Load, kinds.Kind[shaker]{Name: "x", Doc: "X."}, `kinds: load "x" needs a name, a doc and a constructor`},
		{kinds.Load, kinds.Kind[shaker]{Name: "quake", Doc: "X.", New: fine}, `kinds: load "quake" registered twice`},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != tc.want {
					t.Errorf("registering %+v panics with %s, want %s", tc.kind, got, tc.want)
				}
			}()
			kinds.Register(tc.category, tc.kind)
		}()
	}
}
