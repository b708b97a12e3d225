package mutate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/build/mutate"
)

const guardSpec = `{"package":"example.org/mod/pleg","type":"Poller","methods":["Relist"],"variable":"node"}`

func unguard(spec string) mutate.Mutation {
	return mutate.Mutation{Kind: "unguard", Sites: 1, Spec: json.RawMessage(spec)}
}

func TestUnguard(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"one statement", "\tname := \"\"\n\tif node != nil {\n\t\tname = node.Name\n\t}\n\tlog(name)", "\tname := \"\"\n\tname = node.Name\n\tlog(name)"},
		{"several, deeper", "\tfor {\n\t\tif node != nil {\n\t\t\tlog(node)\n\t\t\tcount++\n\t\t}\n\t}", "\tfor {\n\t\tlog(node)\n\t\tcount++\n\t}"},
		{"nil first, in parentheses", "\tif (nil != node) {\n\t\tlog(node)\n\t}", "\tlog(node)"},
		{"a field", "\tif p.node != nil {\n\t\tlog(p.node)\n\t}", "\tlog(p.node)"},
		{"in a function literal", "\tdo(func() {\n\t\tif node != nil {\n\t\t\tlog(node)\n\t\t}\n\t})", "\tdo(func() {\n\t\tlog(node)\n\t})"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := mutate.Rewrite(module("v1.34.4", relist(tc.body)), []mutate.Mutation{unguard(guardSpec)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(relist(tc.want), string(got.Files["pleg/poller.go"])); diff != "" {
				t.Errorf("rewritten source (-want +got):\n%s", diff)
			}
		})
	}
}

// What is more than a guard, or guards something else, stays; the error says what there is.
func TestUnguardLeavesWhatIsNoGuard(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"nothing like it", "\tif other != nil {\n\t\tlog(other)\n\t}", "found 0 (found: method (*Poller).Relist without anything like it)"},
		{"equal to nil", "\tif node == nil {\n\t\treturn\n\t}", "found 0 (found: method (*Poller).Relist without anything like it)"},
		{"asks for more", "\tif node != nil && ready {\n\t\tlog(node)\n\t}", "found 0 (found: an if that asks for more at line 4)"},
		{"an else", "\tif node != nil {\n\t\tlog(node)\n\t} else {\n\t\tlog(nil)\n\t}", "found 0 (found: an if with an else or a statement of its own at line 4)"},
		{"after an else", "\tif ready {\n\t\tlog(1)\n\t} else if node != nil {\n\t\tlog(node)\n\t}", "found 0 (found: an if with an else or a statement of its own at line 6)"},
		{"a statement first", "\tif node := get(); node != nil {\n\t\tlog(node)\n\t}", "found 0 (found: an if with an else or a statement of its own at line 4)"},
		{"declares", "\tif node != nil {\n\t\tn := node.Name\n\t\tlog(n)\n\t}", "found 0 (found: an if whose body is empty or declares something at line 4)"},
		{"empty", "\tif node != nil {\n\t}", "found 0 (found: an if whose body is empty or declares something at line 4)"},
		{"two", "\tif node != nil {\n\t\tlog(node)\n\t}\n\tif node != nil {\n\t\tlog(node)\n\t}", "found 2 (found: a site at line 4; a site at line 7)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := mutate.Rewrite(module("v1.34.4", relist(tc.body)), []mutate.Mutation{unguard(guardSpec)})
			want := "want 1 if that only asks whether node is nil in (*Poller).Relist, " + tc.want
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v\nwant %s", err, want)
			}
		})
	}
	_, err := mutate.Rewrite(module("v1.34.4", relist("")), []mutate.Mutation{unguard(strings.Replace(guardSpec, `"node"`, `"p.node"`, 1))})
	if err == nil || !strings.Contains(err.Error(), "want a variable or a field without what stands before its dot") {
		t.Errorf("with a path for a variable: %v", err)
	}
}
