package mutate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/build/mutate"
)

const repeatSpec = `{"package":"example.org/mod/pleg","type":"Poller","methods":["Relist"],"call":"Addresses","over":"services","where":"NodePort"}`

func repeat(spec string) mutate.Mutation {
	return mutate.Mutation{Kind: "repeatCall", Sites: 1, Spec: json.RawMessage(spec)}
}

const (
	once = "\tips, err := p.nodes.Addresses(p.nw)\n\tlog(ips, err)\n"
	loop = "\tfor _, s := range p.services {\n\t\tif s.NodePort() != 0 {\n\t\t\tlog(s)\n\t\t}\n\t}"
)

func TestRepeatCall(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"before the loop", once + loop,
			once + strings.Replace(loop, "{\n\t\t\tlog", "{\n\t\t\t_, _ = p.nodes.Addresses(p.nw)\n\t\t\tlog", 1)},
		{"after it, and in another branch", loop + "\n\tif ready {\n\t" + strings.ReplaceAll(strings.TrimSuffix(once, "\n"), "\n", "\n\t") + "\n\t}",
			strings.Replace(loop, "{\n\t\t\tlog", "{\n\t\t\t_, _ = p.nodes.Addresses(p.nw)\n\t\t\tlog", 1) + "\n\tif ready {\n\t" +
				strings.ReplaceAll(strings.TrimSuffix(once, "\n"), "\n", "\n\t") + "\n\t}"},
		{"one result, among more conditions", "\tn := Addresses()\n\tlog(n)\n\tfor s := range services {\n\t\tif ready && NodePort(s) {\n\t\t}\n\t}",
			"\tn := Addresses()\n\tlog(n)\n\tfor s := range services {\n\t\tif ready && NodePort(s) {\n\t\t\t_ = Addresses()\n\t\t}\n\t}"},
		{"another loop over them asks nothing", once + "\tfor range p.services {\n\t}\n" + loop,
			once + "\tfor range p.services {\n\t}\n" + strings.Replace(loop, "{\n\t\t\tlog", "{\n\t\t\t_, _ = p.nodes.Addresses(p.nw)\n\t\t\tlog", 1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := mutate.Rewrite(module("v1.34.4", relist(tc.body)), []mutate.Mutation{repeat(repeatSpec)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(relist(tc.want), string(got.Files["pleg/poller.go"])); diff != "" {
				t.Errorf("rewritten source (-want +got):\n%s", diff)
			}
		})
	}
}

// Where it isn't clear what would be repeated, or for what, the build fails and says what there is.
func TestRepeatCallRefuses(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"nothing like it", loop, "found 0 (found: method (*Poller).Relist without anything like it)"},
		{"not assigned", "\tlog(Addresses())\n" + loop, "found 0 (found: method (*Poller).Relist without anything like it)"},
		{"assigned twice", once + once + loop, "found 0 (found: one of 2 assigned calls at line 4; one of 2 assigned calls at line 6)"},
		{"repeated already", once + strings.Replace(loop, "log(s)", "ips, _ := Addresses()\n\t\t\tlog(ips)", 1),
			"found 0 (found: one of 2 assigned calls at line 4; one of 2 assigned calls at line 8)"},
		{"a loop that doesn't ask", once + "\tfor range p.services {\n\t\tif ready {\n\t\t}\n\t}", "found 0 (found: a loop over services that asks no NodePort() at line 6)"},
		{"over others", once + strings.Replace(loop, "p.services", "p.pods", 1), "found 0 (found: method (*Poller).Relist without anything like it)"},
		{"two", once + loop + "\n" + loop, "found 2 (found: a site at line 7; a site at line 12)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := mutate.Rewrite(module("v1.34.4", relist(tc.body)), []mutate.Mutation{repeat(repeatSpec)})
			want := "want 1 if that asks NodePort() in a loop over services, beside one assigned call of Addresses, in (*Poller).Relist, " + tc.want
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v\nwant %s", err, want)
			}
		})
	}
	_, err := mutate.Rewrite(module("v1.34.4", relist("")), []mutate.Mutation{repeat(strings.Replace(repeatSpec, `"NodePort"`, `""`, 1))})
	if err == nil || !strings.Contains(err.Error(), "no call, over or where, or one that is no name") {
		t.Errorf("without a name: %v", err)
	}
}
