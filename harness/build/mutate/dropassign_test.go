package mutate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/build/mutate"
)

const assignSpec = `{"package":"example.org/mod/pleg","functions":["Dial"],"assign":"Timeout"}`

func dropAssign(body, spec string) (mutate.Result, error) {
	src := "package pleg\n\nimport \"time\"\n\nfunc Dial(c *Client) {\n" + body + "\n}\n\n" +
		"func (d *Dialer) Dial(c *Client) {\n\tc.Timeout = time.Second\n}\n"
	return mutate.Rewrite(module("v1.34.4", src), []mutate.Mutation{{Kind: "dropAssign", Sites: 1, Spec: json.RawMessage(spec)}})
}

// A method of the same name keeps its assignment.
func TestDropAssign(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"a field", "\tn := 1\n\tc.HTTP.Timeout = time.Minute\n\tc.n = n", "\tn := 1\n\tc.n = n"},
		{"a variable, with a remark", "\tTimeout = time.Minute // long\n\tc.n = 1", "\tc.n = 1"},
		{"in a function literal", "\tdo(func() {\n\t\tc.Timeout = 1\n\t})", "\tdo(func() {\n\t})"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := dropAssign(tc.body, assignSpec)
			if err != nil {
				t.Fatal(err)
			}
			_, text, _ := strings.Cut(string(got.Files["pleg/poller.go"]), "func Dial(c *Client) {\n")
			text, rest, _ := strings.Cut(text, "\n}\n")
			if diff := cmp.Diff(tc.want, text); diff != "" {
				t.Errorf("the function (-want +got):\n%s", diff)
			}
			if !strings.Contains(rest, "\tc.Timeout = time.Second\n") {
				t.Errorf("the method lost its assignment:\n%s", rest)
			}
		})
	}
}

// What does more than assign stays, and any other count than the stated one is refused with what there is.
func TestDropAssignLeavesWhatDoesMore(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"nothing like it", "\tc.Time = 1", "found 0 (found: function Dial without anything like it)"},
		{"a use", "\tuse(c.Timeout)", "found 0 (found: function Dial without anything like it)"},
		{"a declaration", "\tTimeout := 1\n\tuse(Timeout)", "found 0 (found: an assignment that does more at line 6)"},
		{"several", "\tc.n, c.Timeout = 1, 2", "found 0 (found: an assignment that does more at line 6)"},
		{"an addition", "\tc.Timeout += 1", "found 0 (found: an assignment that does more at line 6)"},
		{"before a condition", "\tif c.Timeout = 1; ok {\n\t}", "found 0 (found: an assignment that does more at line 6)"},
		{"a line for two", "\tc.n = 1; c.Timeout = 2", "found 0 (found: an assignment that shares its line with something else at line 6)"},
		{"two", "\tc.Timeout = 1\n\tc.Timeout = 2", "found 2 (found: a site at line 6; a site at line 7)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := dropAssign(tc.body, assignSpec)
			want := "want 1 statement that gives Timeout a value in Dial, " + tc.want
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v\nwant %s", err, want)
			}
		})
	}
	for spec, want := range map[string]string{
		strings.Replace(assignSpec, `"Timeout"`, `"c.Timeout"`, 1): "want a variable or a field without what stands before its dot",
		strings.Replace(assignSpec, `"Dial"`, `""`, 1):             "no function name",
	} {
		if _, err := dropAssign("\tc.Timeout = 1", spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
}
