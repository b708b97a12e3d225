package churn_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

func TestField(t *testing.T) {
	const object = `{"status":{"n":1,"conditions":[{"type":"A","status":"x"},{"type":"B c]","status":"True","deep":{"k":[1,"two"]}}]},"labels":{"a.b/c":"d"}}`
	for _, tc := range []struct{ path, want string }{
		{"status.n", "1"}, {"status.conditions[type=A].status", "x"}, {`status.conditions[type="B c]"].status`, "True"}, {"status.conditions[1].deep.k[1]", "two"},
		{`labels["a.b/c"]`, "d"}, {"status.none.at.all", ""}, {"status.conditions[type=C].status", ""}, {"status.conditions[7]", ""}, {"status.n.m", ""},
		{"status[0]", ""}, {"status.conditions[1].deep", `{"k":[1,"two"]}`},
	} {
		p, err := churn.ParsePath(tc.path)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, err := p.Of([]byte(object)); err != nil || got != tc.want {
			t.Errorf("%s is %q, %v, want %q", tc.path, got, err, tc.want)
		}
	}
	for text, want := range map[string]string{
		"":             `reading path "": it is empty`,
		"a..b":         `reading path "a..b": a key is empty`,
		"a.":           `reading path "a.": a key is empty`,
		"a[b":          `reading path "a[b": a bracket is not closed`,
		"a[b]":         `reading path "a[b]": [b] is no index and no member=value`,
		`a["b]`:        `reading path "a[\"b]": a quote is not closed`,
		`a[type="b"x]`: `reading path "a[type=\"b\"x]": a bracket is not closed`,
		"a.[0]":        `reading path "a.[0]": a key is empty`,
		"a[-1]":        `reading path "a[-1]": [-1] is no index and no member=value`,
	} {
		if _, err := churn.ParsePath(text); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	p, err := churn.ParsePath("a.b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Of([]byte(`{"a":{"b"}}`)); err == nil || err.Error() != "reading a field: it is no JSON" {
		t.Errorf("got %v", err)
	}
}
