package celobject_test

import (
	"encoding/json"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/celobject"
)

const asked = `{"uid":"u1","name":"a","object":{"spec":{"replicas":3,"big":12345678901}}}`

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestCompileRefuses(t *testing.T) {
	bools := func(expression string) error { _, err := celobject.CompileAs("request", expression); return err }
	maps := func(expression string) error { _, err := celobject.CompileMap("request", expression); return err }
	for _, c := range []struct {
		of               func(string) error
		expression, want string
	}{
		{bools, `request.name == "a"`, ""},
		{bools, `request.name`, ""}, // its type is known only once there is a request
		{bools, ``, "expression is empty"},
		{bools, `object.name == "a"`, "expression, line 1, column 1: undeclared reference to 'object' (in container '')"},
		{bools, `"a"`, "expression, line 1, column 1: it is a string (want a bool)"},
		{maps, `{"allowed": true}`, ""},
		{maps, `{"allowed": true, "warnings": [request.name]}`, ""},
		{maps, "true &&\n  nothing", "expression, line 2, column 3: undeclared reference to 'nothing' (in container '')"},
		{maps, `true`, "expression, line 1, column 1: it is a bool (want a map)"},
	} {
		if got := said(c.of(c.expression)); got != c.want {
			t.Errorf("%s: %q, want %q", c.expression, got, c.want)
		}
	}
}

func TestMap(t *testing.T) {
	for expression, want := range map[string]string{
		`{"allowed": request.name == "b", "status": {"message": "no " + request.name, "code": 403}}`: `{"allowed":false,"status":{"code":403,"message":"no a"}}`,
		`{"warnings": [string(request.object.spec.replicas)]}`:                                       `{"warnings":["3"]}`,
		`request.object.spec`: `{"big":12345678901,"replicas":3}`,
		`request.name`:        "the expression is a string (want a map)",
		`request.object`:      `{"spec":{"big":12345678901,"replicas":3}}`,
		`{"a": request.none}`: "the expression has no value: no such key: none",
	} {
		p, err := celobject.CompileMap("request", expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		raw, err := p.Map([]byte(asked))
		got := said(err)
		if err == nil {
			var v any
			if err := json.Unmarshal(raw, &v); err != nil {
				t.Fatal(err)
			}
			sorted, _ := json.Marshal(v)
			got = string(sorted)
		}
		if want != "" && got != want {
			t.Errorf("%s: %s, want %s", expression, got, want)
		}
	}
}
