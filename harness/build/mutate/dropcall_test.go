package mutate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/build/mutate"
)

func dropCall(spec string) mutate.Mutation {
	return mutate.Mutation{Kind: "dropCall", Sites: 1, Spec: json.RawMessage(spec)}
}

const callSpec = `{"package":"example.org/mod/pleg","type":"Poller","methods":["Relist"],"call":"Drop"}`

// The same call in another method stays, and so does the remark above the one that goes.
func TestDropCallTakesItsLinesOnly(t *testing.T) {
	got, err := mutate.Rewrite(module("v1.34.4", source(t, "dropcall.go.in")), []mutate.Mutation{dropCall(callSpec)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(source(t, "dropcall.go.out"), string(got.Files["pleg/poller.go"])); diff != "" {
		t.Errorf("rewritten source (-want +got):\n%s", diff)
	}
	if len(got.Sites) != 1 || got.Sites[0].Line != 14 || got.Sites[0].After != "" || !strings.Contains(got.Sites[0].Before, "status.Drop(") {
		t.Errorf("sites %+v, want one at line 14 that leaves nothing", got.Sites)
	}
}

func TestDropCall(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"a function", "\tn := 1\n\tDrop(n)\n\tp.n = n", "\tn := 1\n\tp.n = n"},
		{"a method", "\tp.Drop()", ""},
		{"in parentheses, with a semicolon", "\t(p.Drop());", ""},
		{"in a function literal", "\tdo(func() {\n\t\tDrop()\n\t})", "\tdo(func() {\n\t})"},
		{"in a case", "\tswitch p.n {\n\tcase 1:\n\t\tDrop()\n\t\tp.n++\n\t}", "\tswitch p.n {\n\tcase 1:\n\t\tp.n++\n\t}"},
		{"in a select", "\tselect {\n\tcase <-p.ch:\n\t\tDrop()\n\t}", "\tselect {\n\tcase <-p.ch:\n\t}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := mutate.Rewrite(module("v1.34.4", relist(tc.body)), []mutate.Mutation{dropCall(callSpec)})
			if err != nil {
				t.Fatal(err)
			}
			want := relist(tc.want)
			if tc.want == "" {
				want = strings.Replace(want, "{\n\n}", "{\n}", 1)
			}
			if diff := cmp.Diff(want, string(got.Files["pleg/poller.go"])); diff != "" {
				t.Errorf("rewritten source (-want +got):\n%s", diff)
			}
		})
	}
}

// A package whose only use was the call is imported no more.
func TestDropCallDropsTheImport(t *testing.T) {
	src := "package pleg\n\nimport \"example.org/mod/status\"\n\nfunc (p *Poller) Relist() {\n\tstatus.Drop(p)\n}\n"
	got, err := mutate.Rewrite(module("v1.34.4", src), []mutate.Mutation{dropCall(callSpec)})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(got.Files["pleg/poller.go"]); strings.Contains(text, "import") || strings.Contains(text, "Drop") {
		t.Errorf("rewritten source:\n%s", text)
	}
}

func TestDropCallFailsElsewhere(t *testing.T) {
	const notWhole = `found 0 (found: a call that is no statement by itself at line 4)`
	const shared = `found 0 (found: a call that shares its line with something else at line 4)`
	for _, tc := range []struct {
		name, src string
		mutation  mutate.Mutation
		want      string
	}{
		{"before the fix", relist("\tp.n++"), dropCall(callSpec),
			`mutation dropCall: v1.22.2: pleg/poller.go: want 1 statement that calls Drop in (*Poller).Relist, ` +
				`found 0 (found: method (*Poller).Relist without anything like it)`},
		{"its result is used", relist("\tp.n = Drop()"), dropCall(callSpec), notWhole},
		{"deferred", relist("\tdefer Drop()"), dropCall(callSpec), notWhole},
		{"a goroutine", relist("\tgo Drop()"), dropCall(callSpec), notWhole},
		{"a condition's first part", relist("\tif Drop(); p.n > 0 {\n\t}"), dropCall(callSpec), notWhole},
		{"labelled", relist("again: Drop()\n\tgoto again"), dropCall(callSpec), notWhole},
		{"an argument", relist("\tp.Use(Drop())"), dropCall(callSpec), notWhole},
		{"named, not called", relist("\tp.Use(Drop)"), dropCall(callSpec), `without anything like it`},
		{"two on a line", relist("\tDrop(); p.n++"), dropCall(callSpec), shared},
		{"behind another", relist("\tp.n++; Drop()"), dropCall(callSpec), shared},
		{"in a function on one line", relist("\tdo(func() { Drop() })"), dropCall(callSpec), shared},
		{"two sites", relist("\tDrop()\n\tDrop()"), dropCall(callSpec), `found 2 (found: a site at line 4; a site at line 5)`},
		{"no method", "package pleg\n\nfunc (p *Other) Relist() {\n\tDrop()\n}\n", dropCall(callSpec), `(found: no method (*Poller).Relist)`},
		{"no call", "", dropCall(`{"package":"p","type":"T","methods":["m"]}`), `mutation dropCall: no call, or one that is no name`},
		{"with its package", "", dropCall(`{"package":"p","type":"T","methods":["m"],"call":"status.Drop"}`), `mutation dropCall: no call, or one that is no name`},
		{"no type", "", dropCall(`{"package":"p","methods":["m"],"call":"c"}`), `mutation dropCall: no receiver type`},
		{"no name", "", dropCall(`{"package":"p","type":"T","methods":[],"call":"c"}`), `mutation dropCall: no method name`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := mutate.Rewrite(module("v1.22.2", tc.src), []mutate.Mutation{tc.mutation}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestDropCallLabel(t *testing.T) {
	m := dropCall(callSpec)
	if got, want := m.Label(), "(*Poller).Relist doesn't call Drop"; got != want || m.Compresses() {
		t.Errorf("label %q, compresses %v; want %q, false", got, m.Compresses(), want)
	}
}
