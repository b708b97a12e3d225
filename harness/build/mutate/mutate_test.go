package mutate_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/build/mutate"
	"github.com/kube-relapse/relapse/harness/kinds"
)

const relistSpec = `{"package":"example.org/mod/pleg","type":"Poller","methods":["Relist","relist"],"channel":"events"}`

func unselect(spec string) mutate.Mutation {
	return mutate.Mutation{Kind: "unselect", Sites: 1, Versions: ">=1.14.0", Spec: json.RawMessage(spec)}
}

func setConstant(name, val string) mutate.Mutation {
	spec, _ := json.Marshal(map[string]string{"package": "example.org/mod/pleg", "name": name, "value": val})
	return mutate.Mutation{Kind: "setConstant", Sites: 1, Spec: spec}
}

// module serves one file as pleg/poller.go of example.org/mod, beside a test file that must never be searched.
func module(version, src string) mutate.Module {
	return mutate.Module{Path: "example.org/mod", Version: version, FS: fstest.MapFS{
		"pleg/poller.go":      {Data: []byte(src)},
		"pleg/poller_test.go": {Data: []byte(src)},
		"pleg/README.md":      {Data: []byte("not Go")},
	}}
}

func source(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestUnselectChangesNothingButTheSite(t *testing.T) {
	for _, name := range []string{"plain", "body", "imports"} {
		t.Run(name, func(t *testing.T) {
			got, err := mutate.Rewrite(module("v1.34.4", source(t, name+".go.in")), []mutate.Mutation{unselect(relistSpec)})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Files) != 1 {
				t.Fatalf("changed %d files, want 1", len(got.Files))
			}
			if diff := cmp.Diff(source(t, name+".go.out"), string(got.Files["pleg/poller.go"])); diff != "" {
				t.Errorf("rewritten source (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnselectReportsItsSite(t *testing.T) {
	got, err := mutate.Rewrite(module("v1.34.4", source(t, "plain.go.in")), []mutate.Mutation{unselect(relistSpec)})
	if err != nil {
		t.Fatal(err)
	}
	want := []mutate.Site{{Kind: "unselect", File: "pleg/poller.go", Line: 15, After: "p.events <- seen[i]",
		Before: "select {\n\t\tcase p.events <- seen[i]:\n\t\tdefault:\n\t\t\tp.discarded++\n\t\t}"}}
	if diff := cmp.Diff(want, got.Sites); diff != "" {
		t.Errorf("sites (-want +got):\n%s", diff)
	}
	text := "--- pleg/poller.go:15\n+++ pleg/poller.go, by unselect\n" +
		"-select {\n-case p.events <- seen[i]:\n-default:\n-\tp.discarded++\n-}\n+p.events <- seen[i]\n"
	if diff := cmp.Diff(text, got.Sites[0].Diff()); diff != "" {
		t.Errorf("the change (-want +got):\n%s", diff)
	}
}

// Any other number of sites than the one stated must fail, and say what is there instead.
func TestUnexpectedSitesFail(t *testing.T) {
	method := func(body string) string {
		return "package pleg\n\nfunc (p *Poller) relist() {\n" + body + "\n}\n"
	}
	withSelect := "\tselect {\n\tcase p.events <- 1:\n\tdefault:\n\t}"
	for _, tc := range []struct {
		name, version, src string
		mutation           mutate.Mutation
		want               string
	}{
		{"version without the shape", "v1.12.10", source(t, "v1.12.go.in"), mutate.Mutation{Kind: "unselect", Sites: 1, Spec: json.RawMessage(relistSpec)},
			`mutation unselect: v1.12.10: pleg/poller.go: want 1 select sending on events with default in (*Poller).Relist|relist, found 0 (found: plain send at line 16)`},
		{"version out of range", "v1.12.10", source(t, "v1.12.go.in"), unselect(relistSpec),
			`mutation unselect: v1.12.10: outside its version range ">=1.14.0": pleg/poller.go: want 1 select sending on events with default in (*Poller).Relist|relist, found 0 (found: plain send at line 16)`},
		{"out of range although the shape is there", "v1.13.0", method(withSelect), unselect(relistSpec),
			`mutation unselect: v1.13.0: outside its version range ">=1.14.0": pleg/poller.go: want 1 select sending on events with default in (*Poller).Relist|relist, found 1 (found: a site at line 4)`},
		{"two sites", "v1.34.4", method(withSelect + "\n" + withSelect), unselect(relistSpec),
			`want 1 select sending on events with default in (*Poller).Relist|relist, found 2 (found: a site at line 4; a site at line 8)`},
		{"no method", "v1.34.4", "package pleg\n\nfunc (p *Other) relist() {\n" + withSelect + "\n}\n", unselect(relistSpec),
			`pleg/poller.go: want 1 select sending on events with default in (*Poller).Relist|relist, found 0 (found: no method (*Poller).Relist|relist)`},
		{"other channel", "v1.34.4", method("\tselect {\n\tcase p.other <- 1:\n\tdefault:\n\t}"), unselect(relistSpec),
			`found 0 (found: method (*Poller).Relist|relist without anything like it)`},
		{"no default", "v1.34.4", method("\tselect {\n\tcase p.events <- 1:\n\t}"), unselect(relistSpec),
			`found 0 (found: select without default at line 4)`},
		{"another case", "v1.34.4", method("\tselect {\n\tcase p.events <- 1:\n\tcase <-p.stop:\n\tdefault:\n\t}"), unselect(relistSpec),
			`found 0 (found: select with 3 cases at line 4)`},
		{"a break would leave the loop", "v1.34.4", method("\tfor {\n\t\tselect {\n\t\tcase p.events <- 1:\n\t\t\tbreak\n\t\tdefault:\n\t\t}\n\t}"), unselect(relistSpec),
			`found 0 (found: select that its case breaks out of at line 5)`},
		{"receiving is not sending", "v1.34.4", method("\tselect {\n\tcase <-p.events:\n\tdefault:\n\t}"), unselect(relistSpec),
			`found 0 (found: method (*Poller).Relist|relist without anything like it)`},
		{"package gone", "v1.34.4", method(""), unselect(strings.Replace(relistSpec, "mod/pleg", "mod/gone", 1)),
			`looking for package example.org/mod/gone in module example.org/mod`},
		{"package of another module", "v1.34.4", method(""), unselect(strings.Replace(relistSpec, "example.org/mod", "example.org/else", 1)),
			`mutation unselect: v1.34.4: package example.org/else/pleg is not in module example.org/mod`},
		{"constant gone", "v1.34.4", "package pleg\n", setConstant("capacity", "40"),
			`mutation setConstant: v1.34.4: pleg/poller.go: want 1 constant capacity with a value of its own, found 0 (found: no constant capacity)`},
		{"constant is a variable", "v1.34.4", "package pleg\n\nvar capacity = 1\n", setConstant("capacity", "40"),
			`found 0 (found: a variable at line 3)`},
		{"constant repeats another", "v1.34.4", "package pleg\n\nconst (\n\ta = iota\n\tcapacity\n)\n", setConstant("capacity", "40"),
			`found 0 (found: a constant that repeats another's expression at line 5)`},
		{"constant is repeated", "v1.34.4", "package pleg\n\nconst (\n\tcapacity = 1\n\tb\n)\n", setConstant("capacity", "40"),
			`found 0 (found: a constant whose expression the next one repeats at line 4)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := mutate.Rewrite(module(tc.version, tc.src), []mutate.Mutation{tc.mutation})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v\nwant %s", err, tc.want)
			}
			if len(r.Files) != 0 {
				t.Errorf("changed %d files beside the error", len(r.Files))
			}
		})
	}
}

func TestMutationsApplyInOrder(t *testing.T) {
	src := "package pleg\n\nimport \"time\"\n\nconst (\n\t// how many\n\tcapacity  = 1000 // a lot\n\tthreshold = time.Minute * 3\n)\n"
	got, err := mutate.Rewrite(module("v1.34.4", src), []mutate.Mutation{setConstant("capacity", "40"), setConstant("threshold", "time.Second * 12")})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("1000", "40", "time.Minute * 3", "time.Second * 12").Replace(src)
	if diff := cmp.Diff(want, string(got.Files["pleg/poller.go"])); diff != "" {
		t.Errorf("rewritten source (-want +got):\n%s", diff)
	}
	if len(got.Sites) != 2 || got.Sites[1].Before != "time.Minute * 3" || got.Sites[1].Line != 8 {
		t.Errorf("sites: %+v", got.Sites)
	}
}

func TestBadMutationsAreRefused(t *testing.T) {
	for _, tc := range []struct {
		name string
		m    mutate.Mutation
		want string
	}{
		{"unknown kind", mutate.Mutation{Kind: "patch", Sites: 1, Spec: json.RawMessage(`{}`)}, `unknown mutation kind "patch"`},
		{"unknown field", unselect(`{"package":"p","typo":1}`), `unknown field "typo"`},
		{"vacuous", mutate.Mutation{Kind: "unselect", Spec: json.RawMessage(relistSpec)}, `sites is 0: a mutation must change at least one place`},
		{"bad range", mutate.Mutation{Kind: "unselect", Sites: 1, Versions: "newer", Spec: json.RawMessage(relistSpec)}, `parsing version range "newer"`},
		{"no channel", unselect(`{"package":"p","type":"T","methods":["m"]}`), `mutation unselect: no channel`},
		{"no package", unselect(`{"type":"T","methods":["m"],"channel":"c"}`), `mutation unselect: no package`},
		{"value is no expression", setConstant("c", "1 +"), `parsing value "1 +"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := tc.m.Shape(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestLabels(t *testing.T) {
	u, c := unselect(relistSpec), setConstant("capacity", "40")
	if got, want := u.Label(), "(*Poller).Relist|relist sends on events without a default: it blocks when the channel is full"; got != want {
		t.Errorf("label %q, want %q", got, want)
	}
	if got, want := c.Label(), "the constant capacity is set to 40 instead of the subject's own value"; got != want {
		t.Errorf("label %q, want %q", got, want)
	}
	if u.Compresses() || !c.Compresses() {
		t.Errorf("unselect compresses: %v, setConstant compresses: %v; want false, true", u.Compresses(), c.Compresses())
	}
}

func TestShapesAreRegistered(t *testing.T) {
	for _, name := range []string{"unselect", "setConstant"} {
		if _, ok := kinds.Lookup(kinds.Mutation, name); !ok {
			t.Errorf("mutation %s is not registered", name)
		}
	}
}
