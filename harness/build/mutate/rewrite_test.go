package mutate_test

import (
	"encoding/json"
	"go/format"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/build/mutate"
)

// rewrite is a mutation of the package of the file in testdata, with fields of its spec as JSON.
func rewrite(sites int, fields string) mutate.Mutation {
	return mutate.Mutation{Kind: "rewrite", Sites: sites, Spec: json.RawMessage(`{"package":"example.org/mod/pleg",` + fields + `}`)}
}

const inRelist = `"type":"Poller","methods":["Relist"],`

func TestRewrite(t *testing.T) {
	src := source(t, "rewrite.go.in")
	for _, tc := range []struct {
		name     string
		m        mutate.Mutation
		was, now string // of the source; everything else stays
	}{
		{"a select, with what it sends", rewrite(1, inRelist+`"find":{"select":"events"},"replace":"p.put($value, $channel)"`),
			"select {\n\t\tcase p.events <- found[i]:\n\t\tdefault:\n\t\t\tmetrics.Discarded.Inc()\n\t\t\tfmt.Println(\"channel is full\")\n\t\t}",
			"p.put(found[i], p.events)"},
		{"before a select", rewrite(1, inRelist+`"find":{"select":"events"},"before":"if p.full() {\ncontinue\n}"`),
			"\t\tselect {", "\t\tif p.full() {\n\t\t\tcontinue\n\t\t}\n\t\tselect {"},
		{"around a plain send", rewrite(1, `"find":{"send":"events"},"replace":"go func() { $found }()"`),
			"\tp.events <- \"check\"", "\tgo func() { p.events <- \"check\" }()"},
		{"behind a plain send", rewrite(1, `"find":{"send":"events"},"after":"p.n--"`),
			"\tp.events <- \"check\"", "\tp.events <- \"check\"\n\tp.n--"},
		{"a statement that calls", rewrite(1, inRelist+`"find":{"statement":"Inc"},"replace":"p.dropped.Inc()"`),
			"metrics.Discarded.Inc()", "p.dropped.Inc()"},
		{"a call, with its arguments", rewrite(1, `"functions":["newPoller"],"find":{"call":"make"},"replace":"boxed($args)"`),
			"make(chan string, capacity)", "boxed(chan string, capacity)"},
		{"an if", rewrite(1, inRelist+`"find":{"if":"check"},"replace":"go func() {\n$body\n}()"`),
			"if err := p.check(capacity); err != nil {\n\t\tfmt.Println(\"check\", err)\n\t}", "go func() {\n\t\tfmt.Println(\"check\", err)\n\t}()"},
		{"before a for", rewrite(1, inRelist+`"find":{"for":"found"},"before":"p.n = 0"`),
			"\tfor i := range found {", "\tp.n = 0\n\tfor i := range found {"},
		{"a use of a constant, where it is used", rewrite(1, `"functions":["newPoller"],"find":{"use":"capacity"},"replace":"$found * 5"`),
			"make(chan string, capacity)", "make(chan string, capacity * 5)"},
		{"a field that is used, not its name in a literal", rewrite(1, `"type":"Poller","methods":["check"],"find":{"use":"events"},"replace":"p.other"`),
			"p.events <- \"check\"", "p.other <- \"check\""},
		{"a string", rewrite(1, `"find":{"string":"channel is full"},"replace":"\"no room\""`), `"channel is full"`, `"no room"`},
		{"the beginning of a body", rewrite(1, `"type":"Poller","methods":["check"],"find":{"body":true},"before":"if n < 0 {\nreturn nil\n}"`),
			"check(n int) error {\n", "check(n int) error {\n\tif n < 0 {\n\t\treturn nil\n\t}\n"},
		{"a whole body", rewrite(1, `"type":"Poller","methods":["check"],"find":{"body":true},"replace":"go func() {\n$body\n}()\nreturn nil"`),
			"{\n\tp.events <- \"check\"\n\treturn nil\n}", "{\n\tgo func() {\n\t\tp.events <- \"check\"\n\t\treturn nil\n\t}()\n\treturn nil\n}"},
		{"a struct's fields", rewrite(1, `"find":{"struct":"Poller"},"before":"// ours\nqueue queue"`),
			"type Poller struct {\n", "type Poller struct {\n\t// ours\n\tqueue queue\n"},
		{"what gives a value", rewrite(1, inRelist+`"find":{"statement":"check"},"replace":"_ = 1"`), "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := mutate.Rewrite(module("v1.34.4", src), []mutate.Mutation{tc.m})
			if tc.was == "" {
				if err == nil || !strings.Contains(err.Error(), "which stands in no list of statements") {
					t.Fatalf("error %v, want that it stands in no list", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(src, tc.was) != 1 {
				t.Fatalf("the source has %q %d times", tc.was, strings.Count(src, tc.was))
			}
			text := string(got.Files["pleg/poller.go"])
			want := strings.Replace(src, tc.was, tc.now, 1)
			if !strings.Contains(text, "metrics.") {
				want = strings.Replace(want, "\t\"example.org/mod/metrics\"\n", "", 1)
			}
			if diff := cmp.Diff(want, text); diff != "" {
				t.Errorf("rewritten source (-want +got):\n%s", diff)
			}
			if _, err := format.Source([]byte(text)); err != nil {
				t.Error(err)
			}
		})
	}
}

// An import that is there is not repeated, also in a second mutation of the file.
func TestRewriteAddsImports(t *testing.T) {
	m := rewrite(1, inRelist+`"find":{"select":"events"},"imports":["sync","fmt","clock example.org/clock"],"replace":"p.once.Do(func() { clock.Now() })"`)
	again := rewrite(1, inRelist+`"find":{"for":"found"},"imports":["sync"],"before":"var mu sync.Mutex\nmu.Lock()"`)
	got, err := mutate.Rewrite(module("v1.34.4", source(t, "rewrite.go.in")), []mutate.Mutation{m, again})
	if err != nil {
		t.Fatal(err)
	}
	text := string(got.Files["pleg/poller.go"])
	for want, n := range map[string]int{`import "sync"` + "\n": 1, `import clock "example.org/clock"` + "\n": 1, `"fmt"`: 1, `example.org/mod/metrics`: 0} {
		if strings.Count(text, want) != n {
			t.Errorf("%q stands there %d times, want %d:\n%s", want, strings.Count(text, want), n, text)
		}
	}
	if _, err := format.Source([]byte(text)); err != nil {
		t.Errorf("%v:\n%s", err, text)
	}
}

func TestRewriteFailsElsewhere(t *testing.T) {
	src := source(t, "rewrite.go.in")
	for _, tc := range []struct {
		name string
		m    mutate.Mutation
		want string
	}{
		{"another count", rewrite(2, inRelist+`"find":{"select":"events"},"replace":"_ = $value"`),
			"mutation rewrite: v1.34.4: pleg/poller.go: want 2 select on events in method (*Poller).Relist, found 1 (found: a site at line 25)"},
		{"another channel", rewrite(1, inRelist+`"find":{"select":"other"},"replace":"_ = $value"`),
			"found 0 (found: method (*Poller).Relist without anything like it)"},
		{"no method", rewrite(1, `"type":"Poller","methods":["Poll"],"find":{"send":"events"},"replace":"_ = $value"`), "(found: no method (*Poller).Poll)"},
		{"no function", rewrite(1, `"functions":["make"],"find":{"send":"events"},"replace":"_ = $value"`), "(found: no function make)"},
		{"a method for a function", rewrite(1, `"functions":["check"],"find":{"send":"events"},"replace":"_ = $value"`), "(found: no function check)"},
		{"no shape", rewrite(1, `"find":{},"replace":"x()"`), "find names 0 shapes: want exactly one"},
		{"two shapes", rewrite(1, `"find":{"send":"a","select":"b"},"replace":"x()"`), "find names 2 shapes: want exactly one"},
		{"a dotted name", rewrite(1, `"find":{"send":"p.events"},"replace":"x()"`), `find send "p.events" is no name`},
		{"nothing to do", rewrite(1, `"find":{"send":"a"}`), "want exactly one of replace, before and after"},
		{"two things to do", rewrite(1, `"find":{"send":"a"},"before":"x()","after":"x()"`), "want exactly one of replace, before and after"},
		{"before an expression", rewrite(1, `"find":{"use":"a"},"before":"x()"`), "find has use, an expression, which is only replaced"},
		{"in place of fields", rewrite(1, `"find":{"struct":"a"},"replace":"x int"`), "find has struct, whose fields stay: want before or after"},
		{"a body of nothing", rewrite(1, `"find":{"body":true},"before":"x()"`), "find has body, which belongs to methods or functions"},
		{"a reference that is not given", rewrite(1, `"find":{"use":"a"},"replace":"$args"`), "replace has $args, which use does not give (want one of $found)"},
		{"no Go", rewrite(1, `"find":{"send":"a"},"replace":"x("`), "parsing replace: "},
		{"methods of nothing", rewrite(1, `"methods":["m"],"find":{"send":"a"},"replace":"x()"`), "methods without their receiver's type"},
		{"a type alone", rewrite(1, `"type":"T","find":{"send":"a"},"replace":"x()"`), "a receiver's type without methods"},
		{"a bad import", rewrite(1, `"find":{"send":"a"},"imports":["a b c"],"replace":"x()"`), `import "a b c" is neither PATH nor NAME PATH`},
		{"a select without a send", rewrite(1, `"find":{"receive":"events"},"replace":"x($channel)"`), "found 0 (found: package example.org/mod/pleg without anything like it)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := mutate.Rewrite(module("v1.34.4", src), []mutate.Mutation{tc.m}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v\nwant %s", err, tc.want)
			}
		})
	}
}

func addFile(name, content string) mutate.Mutation {
	spec, _ := json.Marshal(map[string]string{"package": "example.org/mod/pleg", "name": name, "content": content})
	return mutate.Mutation{Kind: "addFile", Sites: 1, Spec: spec}
}

func TestAddFile(t *testing.T) {
	const queue = "package pleg\n\ntype queue struct{}\n"
	got, err := mutate.Rewrite(module("v1.34.4", source(t, "rewrite.go.in")), []mutate.Mutation{addFile("queue.go", queue)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]byte{"pleg/queue.go": []byte(queue)}, got.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if len(got.Sites) != 1 || got.Sites[0].File != "pleg/queue.go" || got.Sites[0].Line != 1 {
		t.Errorf("sites %+v, want the file", got.Sites)
	}
	for _, tc := range []struct {
		name string
		ms   []mutate.Mutation
		want string
	}{
		{"one that is there", []mutate.Mutation{addFile("poller.go", queue)}, "mutation addFile: v1.34.4: pleg/poller.go is there already: want another name"},
		{"twice", []mutate.Mutation{addFile("queue.go", queue), addFile("queue.go", queue)}, "pleg/queue.go is there already"},
		{"a path", []mutate.Mutation{addFile("../queue.go", queue)}, `name "../queue.go" is no Go file's base name`},
		{"a test", []mutate.Mutation{addFile("queue_test.go", queue)}, `name "queue_test.go" is no Go file's base name`},
		{"no Go", []mutate.Mutation{addFile("queue.go", "type x")}, "parsing content: "},
		{"nothing", []mutate.Mutation{addFile("queue.go", " ")}, "no content"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := mutate.Rewrite(module("v1.34.4", source(t, "rewrite.go.in")), tc.ms); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v\nwant %s", err, tc.want)
			}
		})
	}
}
