package churn_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

// FuzzRead holds the reader to its contract on any input: it doesn't panic, reads the same each time, and finds the
// paths that the plain way finds in all that is JSON.
func FuzzRead(f *testing.F) {
	pair := func(a, b string) { f.Add([]byte(a), []byte(b)) }
	pair(`{"metadata":{"resourceVersion":"1"},"a":[{"type":"x","v":1},{"type":"y"}]}`, `{"metadata":{"resourceVersion":"2"},"a":[{"type":"y"},{"type":"x","v":1.0}]}`)
	pair(`{"a b":{"\u0063":null},"l":[1,[2,{}],"x"]}`, `{"a b":{"c":false},"l":[1,[2,{"k":[]}]]}`)
	pair(`{"metadata":{"managedFields":[{"manager":"m","time":"a","fieldsV1":{"f:x":{}}}]}}`, `{"metadata":{"managedFields":[{"manager":"m","time":"b","fieldsV1":{"f:x":{}}},{"manager":"n"}]}}`)
	pair(`{"metadata":{"managedFields":[{"manager":"m","time":"a"}]},"x":"1","y":"p"}`, `{"metadata":{"managedFields":[{"manager":"m","time":"b"}]},"x":"2","y":"q"}`)
	pair(`{"a":1,"a":2}`, `{"a":3,"a":2}`)
	pair(`["\ud800",{"name":"\\\""}]`, "[\"\xff\",{\"name\":\"\\\\\\\"\",\"\":0}]")
	pair(string(bundleDeployment(7)), string(bundleDeployment(9)))
	pair(string(record(2)), `{"time":"2026-03-01T10:00:00Z","type":"SYNCED","resource":"pods"}`)
	f.Fuzz(func(t *testing.T, before, after []byte) {
		for _, one := range [][]byte{before, append(append(bytes.Clone(before), '\n'), after...)} {
			if first, second := readAll(one), readAll(one); !cmp.Equal(first, second) {
				t.Errorf("read twice:\n%s", cmp.Diff(first, second))
			}
		}
		got, err := churn.Changes(before, after)
		if !json.Valid(before) || !json.Valid(after) {
			return
		}
		want, bad := naive(before, after)
		if bad != nil {
			return // nested deeper than encoding/json goes
		}
		if err != nil {
			t.Fatalf("comparing %s and %s: %v", before, after, err)
		}
		var paths []string
		for _, c := range got {
			paths = append(paths, c.Path)
		}
		if !slices.Equal(paths, want) {
			t.Errorf("comparing %s and %s gives %q, want %q", before, after, paths, want)
		}
		inTurn(t, before, after)
	})
}

// inTurn has two versions follow each other again and again, and a third one that has bytes of both: what is known of
// where the last write changed something must not hide what the next one did.
func inTurn(t *testing.T, before, after []byte) {
	third := bytes.Clone(after)
	copy(third[len(third)/2:], before[min(len(before), len(third)/2):])
	all := [][]byte{before, after, before, after, third, before, after, third}
	var record bytes.Buffer
	for _, object := range all {
		v := churn.Version{Time: began, Type: churn.Modified, Resource: "pods", Name: "a", UID: "1", Object: bytes.TrimSpace(object)}
		b, err := json.Marshal(v)
		if err != nil || len(v.Object) == 0 || v.Object[0] != '{' {
			return
		}
		record.Write(append(b, '\n'))
	}
	i := 0
	var last []byte
	for u, err := range churn.Updates(&record) {
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			want, err := naive(last, u.Object)
			if err != nil {
				return
			}
			if !slices.Equal(u.Paths, want) {
				t.Errorf("version %d, %s after %s, changed %q, want %q", i, u.Object, last, u.Paths, want)
			}
			if whole := []byte(fmt.Sprintf(`{"u":%s}`, u.Object)); !json.Valid(whole) {
				t.Errorf("version %d is %s", i, u.Object)
			}
		}
		last = bytes.Clone(u.Object)
		i++
	}
}

// readAll is all that Updates says, as text.
func readAll(b []byte) []string {
	var out []string
	for u, err := range churn.Updates(bytes.NewReader(b)) {
		if err != nil {
			out = append(out, err.Error())
			continue
		}
		out = append(out, u.Type+" "+u.Name+" "+u.Class+" "+u.Manager+" "+string(u.Object))
	}
	return out
}
