package mutate_test

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/build/mutate"
)

func dropCase(spec string) mutate.Mutation {
	return mutate.Mutation{Kind: "dropCase", Sites: 1, Spec: json.RawMessage(spec)}
}

const goneSpec = `{"package":"example.org/mod/pleg","type":"Poller","methods":["Relist"],"channel":"gone"}`

// relist is a source whose method has these statements.
func relist(body string) string {
	return "package pleg\n\nfunc (p *Poller) Relist() {\n" + body + "\n}\n"
}

// The channel is closed and waited for elsewhere, and the dropped case returns: all that must still compile.
func TestDropCaseLeavesThePlainSend(t *testing.T) {
	got, err := mutate.Rewrite(module("v1.34.4", source(t, "dropsend.go.in")), []mutate.Mutation{dropCase(goneSpec)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(source(t, "dropsend.go.out"), string(got.Files["pleg/poller.go"])); diff != "" {
		t.Errorf("rewritten source (-want +got):\n%s", diff)
	}
	if len(got.Sites) != 1 || got.Sites[0].Line != 23 || got.Sites[0].After != "events <- seen[i]" {
		t.Errorf("sites %+v, want one at line 23 that leaves the send", got.Sites)
	}
}

func TestDropCaseLeavesTheOtherCases(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"two others", "\tselect {\n\tcase p.ch <- 1:\n\t\tp.n++ // sent\n\tcase v, ok := <-p.gone:\n\t\tp.n = v // gone\n\t// by the clock\n\tcase <-p.tick:\n\t}",
			"\tselect {\n\tcase p.ch <- 1:\n\t\tp.n++ // sent\n\t// by the clock\n\tcase <-p.tick:\n\t}"},
		{"a receive", "\tselect {\n\tcase <-gone:\n\t\treturn\n\tcase v := <-p.ch:\n\t\tp.n = v\n\t}", "\tselect {\n\tcase v := <-p.ch:\n\t\tp.n = v\n\t}"},
		{"default", "\tselect {\n\tcase <-gone:\n\t\treturn\n\tdefault:\n\t}", "\tselect {\n\tdefault:\n\t}"},
		{"a send that breaks", "\tfor {\n\t\tselect {\n\t\tcase p.ch <- 1:\n\t\t\tbreak\n\t\tcase <-gone:\n\t\t\treturn\n\t\t}\n\t}",
			"\tfor {\n\t\tselect {\n\t\tcase p.ch <- 1:\n\t\t\tbreak\n\t\t}\n\t}"},
		{"a send with statements", "\tselect {\n\tcase p.ch <- 1:\n\t\tn := p.n\n\t\tp.n = n + 1\n\tcase p.last = <-(p.gone):\n\t}",
			"\tp.ch <- 1\n\t{\n\t\tn := p.n\n\t\tp.n = n + 1\n\t}"},
		{"in a function literal", "\tgo func() {\n\t\tselect {\n\t\tcase p.ch <- 1:\n\t\tcase <-gone:\n\t\t}\n\t}()", "\tgo func() {\n\t\tp.ch <- 1\n\t}()"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := mutate.Rewrite(module("v1.34.4", relist(tc.body)), []mutate.Mutation{dropCase(goneSpec)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(relist(tc.want), string(got.Files["pleg/poller.go"])); diff != "" {
				t.Errorf("rewritten source (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDropCaseFailsElsewhere(t *testing.T) {
	site := "\tselect {\n\tcase p.ch <- 1:\n\tcase <-gone:\n\t}"
	within := dropCase(goneSpec)
	within.Sites = 2
	for _, tc := range []struct {
		name, src string
		mutation  mutate.Mutation
		want      string
	}{
		{"before the fix", relist("\tfor {\n\t\tp.ch <- 1\n\t}"), dropCase(goneSpec),
			`mutation dropCase: v1.22.2: pleg/poller.go: want 1 select with a case that receives from gone in (*Poller).Relist, ` +
				`found 0 (found: method (*Poller).Relist without anything like it)`},
		{"waits for it alone", relist("\t<-gone"), dropCase(goneSpec), `found 0 (found: plain receive at line 4)`},
		{"no other case", relist("\tselect {\n\tcase <-gone:\n\t}"), dropCase(goneSpec), `found 0 (found: select without another case at line 4)`},
		{"twice in one select", relist("\tselect {\n\tcase <-gone:\n\tcase <-p.gone:\n\tdefault:\n\t}"), dropCase(goneSpec),
			`found 0 (found: select with 2 cases that receive from it at line 4)`},
		{"sends on it", relist("\tselect {\n\tcase gone <- 1:\n\tdefault:\n\t}"), dropCase(goneSpec), `without anything like it`},
		{"two sites", relist(site + "\n" + site), dropCase(goneSpec), `found 2 (found: a site at line 4; a site at line 8)`},
		{"one site within another", relist("\tselect {\n\tcase p.ch <- 1:\n\t\tselect {\n\t\tcase <-gone:\n\t\tdefault:\n\t\t}\n\tcase <-gone:\n\t}"), within,
			`mutation dropCase: v1.22.2: pleg/poller.go: the sites at lines 4 and 6 lie within each other`},
		{"no method", "package pleg\n\nfunc (p *Other) Relist() {\n" + site + "\n}\n", dropCase(goneSpec), `(found: no method (*Poller).Relist)`},
		{"no channel", "", dropCase(`{"package":"p","type":"T","methods":["m"]}`), `mutation dropCase: no channel`},
		{"no type", "", dropCase(`{"package":"p","methods":["m"],"channel":"c"}`), `mutation dropCase: no receiver type`},
		{"no name", "", dropCase(`{"package":"p","type":"T","methods":[""],"channel":"c"}`), `mutation dropCase: no method name`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := mutate.Rewrite(module("v1.22.2", tc.src), []mutate.Mutation{tc.mutation}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestDropCaseLabel(t *testing.T) {
	m := dropCase(goneSpec)
	if got, want := m.Label(), "a select of (*Poller).Relist has no case for gone: it waits for its other cases alone"; got != want || m.Compresses() {
		t.Errorf("label %q, compresses %v; want %q, false", got, m.Compresses(), want)
	}
}

// The subject's own source: the guard of PR 105606 comes out of v1.34.4 and leaves the send, and v1.22.2 never had it.
func TestDropCaseInDeleteCollection(t *testing.T) {
	m := dropCase(`{"package":"k8s.io/apiserver/pkg/registry/generic/registry","type":"Store","methods":["DeleteCollection"],"channel":"workersExited"}`)
	const file = "pkg/registry/generic/registry/store.go"
	dir := published(t, "k8s.io/apiserver@v0.34.4")
	before, err := os.ReadFile(dir + "/" + file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := mutate.Rewrite(mutate.Module{Path: "k8s.io/apiserver", Version: "v0.34.4", FS: os.DirFS(dir)}, []mutate.Mutation{m})
	if err != nil {
		t.Fatal(err)
	}
	after := got.Files[file]
	if _, err := parser.ParseFile(token.NewFileSet(), file, after, 0); err != nil {
		t.Errorf("the rewritten source does not parse: %v", err)
	}
	head, _, _ := strings.Cut(string(before), "\t\t\t\tselect {\n\t\t\t\tcase toProcess <- newItems[i]:\n\t\t\t\tcase <-workersExited:\n")
	_, tail, _ := strings.Cut(string(before), "\t\t\t}\n\t\t\tprocessedItems += len(newItems)\n")
	want := head + "\t\t\t\ttoProcess <- newItems[i]\n" + "\t\t\t}\n\t\t\tprocessedItems += len(newItems)\n" + tail
	if diff := cmp.Diff(want, string(after)); diff != "" {
		t.Errorf("rewritten source (-want +got):\n%s", diff)
	}

	old := mutate.Module{Path: "k8s.io/apiserver", Version: "v0.22.2", FS: os.DirFS(published(t, "k8s.io/apiserver@v0.22.2"))}
	if _, err := mutate.Rewrite(old, []mutate.Mutation{m}); err == nil || !strings.Contains(err.Error(), "found 0") {
		t.Errorf("v0.22.2: error %v, want that there is no such case", err)
	}
}

// published is the directory of a published module.
func published(t *testing.T, at string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", at)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	var m struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &m); err != nil || jsonErr != nil || m.Dir == "" {
		t.Fatalf("downloading %s: %v %s", at, err, m.Error)
	}
	return m.Dir
}
