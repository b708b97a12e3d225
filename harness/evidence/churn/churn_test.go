package churn_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

const monitored = "status.conditions[type=Monitored].lastUpdateTime"

func TestChanges(t *testing.T) {
	entry := func(manager, at, fields string) string {
		return fmt.Sprintf(`{"manager":%q,"operation":"Update","time":%q,"fieldsV1":{%s}}`, manager, at, fields)
	}
	managed := func(entries ...string) string {
		return `{"metadata":{"managedFields":[` + strings.Join(entries, ",") + `]}}`
	}
	for _, tc := range []struct{ name, before, after, want string }{
		{"nothing", `{"a":1}`, `{"a":1}`, ""},
		{"white space and order", `{"a":[1, 2],"b":"x"}`, ` {"b":"\u0078", "a":[1,2]}`, ""},
		{"a version's number", `{"metadata":{"resourceVersion":"1","generation":1}}`, `{"metadata":{"resourceVersion":"2","generation":1}}`, ""},
		{"a generation", `{"metadata":{"generation":1}}`, `{"metadata":{"generation":2}}`, "metadata.generation 1>2"},
		{"the number elsewhere", `{"spec":{"resourceVersion":"1"}}`, `{"spec":{"resourceVersion":"2"}}`, `spec.resourceVersion "1">"2"`},
		{"by type", `{"status":{"conditions":[{"type":"A","v":1},{"type":"B","v":1}]}}`, `{"status":{"conditions":[{"type":"A","v":1},{"type":"B","v":2}]}}`,
			"status.conditions[type=B].v 1>2"},
		{"by type, one in front", `{"c":[{"type":"B","v":1}]}`, `{"c":[{"type":"A"},{"type":"B","v":1}]}`, `c[type=A] >{"type":"A"}`},
		{"by type, turned round", `{"c":[{"type":"A"},{"type":"B"}]}`, `{"c":[{"type":"B"},{"type":"A"}]}`, `c [{"type":"A"},{"type":"B"}]>[{"type":"B"},{"type":"A"}]`},
		{"by name where two share a type", `{"c":[{"type":"A","name":"x"},{"type":"A","name":"y","v":1}]}`, `{"c":[{"type":"A","name":"x"},{"type":"A","name":"y","v":2}]}`, "c[name=y].v 1>2"},
		{"by index", `{"c":[{"v":1},{"v":1}]}`, `{"c":[{"v":1},{"v":2},3]}`, "c[1].v 1>2; c[2] >3"},
		{"a key with dots", `{"metadata":{"labels":{"app.kubernetes.io/name":"a"}}}`, `{"metadata":{"labels":{}}}`, `metadata.labels["app.kubernetes.io/name"] "a">`},
		{"a key with a bracket", `{"c":[{"name":"a]","v":1}]}`, `{"c":[{"name":"a]","v":2}]}`, `c[name="a]"].v 1>2`},
		{"another type", `{"a":{"b":1}}`, `{"a":[1]}`, `a {"b":1}>[1]`},
		{"a number that begins another", `{"a":12}`, `{"a":123}`, "a 12>123"},
		{"the whole", `1`, `2`, " 1>2"},
		{"a manager's time", managed(entry("m", "t1", "")), managed(entry("m", "t2", "")), ""},
		{"a manager's time and place", managed(entry("m", "t1", ""), entry("n", "t2", "")), managed(entry("n", "t2", ""), entry("m", "t3", "")), ""},
		{"a manager's fields", managed(entry("m", "t1", "")), managed(entry("m", "t1", `"f:a":{}`)),
			"metadata.managedFields[manager=m,operation=Update].fieldsV1[\"f:a\"] >{}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all, err := churn.Changes([]byte(tc.before), []byte(tc.after))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range all {
				got = append(got, fmt.Sprintf("%s %s>%s", c.Path, c.Before, c.After))
			}
			want := strings.ReplaceAll(tc.want, `["f:a"]`, ".f:a")
			if s := strings.Join(got, "; "); s != want {
				t.Errorf("got %s, want %s", s, want)
			}
		})
	}
}

func TestChangesOfNoJSON(t *testing.T) {
	for _, tc := range []struct{ before, after, want string }{
		{``, `{}`, `comparing versions: it is no JSON`},
		{`{"a":{"b":1}}`, `{"a":{"b"}}`, `comparing versions at "a": it is no JSON`},
		{`{"a":[1,2]}`, `{"a":[1,`, `comparing versions at "": it is no JSON`},
		{`{"a":"x"}`, `{"a":"x`, `comparing versions at "": it is no JSON`},
	} {
		if _, err := churn.Changes([]byte(tc.before), []byte(tc.after)); err == nil || err.Error() != tc.want {
			t.Errorf("%s and %s: got %v, want %s", tc.before, tc.after, err, tc.want)
		}
	}
}

func TestUpdatesOfALoop(t *testing.T) {
	var updates []churn.Update
	for u, err := range churn.Updates(bytes.NewReader(record(5))) {
		if err != nil {
			t.Fatal(err)
		}
		updates = append(updates, u)
	}
	if len(updates) != 6 || updates[0].Effective() || updates[0].Before != nil {
		t.Fatalf("got %d updates, the first %+v", len(updates), updates[0])
	}
	for _, u := range updates[1:] {
		if u.Class != monitored || !cmp.Equal(u.Paths, []string{monitored}) || u.Manager != "fleet-agent-vulnerable" || u.Subresource != "status" || !u.Effective() {
			t.Errorf("%s changed %s, by %s of %q", u.ResourceVersion, u.Class, u.Manager, u.Subresource)
		}
	}
}

// What was deleted, made anew or lost is not compared with what was there before.
func TestUpdatesForget(t *testing.T) {
	var b bytes.Buffer
	say := func(typ, name, uid, object string) {
		v := churn.Version{Time: began, Type: typ, Resource: "pods", Namespace: "n", Name: name, UID: uid}
		if object != "" {
			v.Object = []byte(object)
		}
		b.Write(version(v))
	}
	say(churn.Listed, "a", "1", `{"v":1}`)
	say(churn.Listed, "b", "2", `{"v":1}`)
	say(churn.Synced, "", "", "")
	say(churn.Modified, "a", "1", `{"v":2}`)
	say(churn.Modified, "a", "9", `{"v":3}`)
	say(churn.Deleted, "a", "9", `{"v":4}`)
	say(churn.Added, "a", "9", `{"v":5}`)
	say(churn.Lost, "", "", "")
	say(churn.Listed, "a", "9", `{"v":6}`)
	say(churn.Synced, "", "", "")
	say(churn.Modified, "b", "2", `{"v":7}`)
	say(churn.Modified, "a", "9", `{"v":8}`)
	var got []string
	for u, err := range churn.Updates(&b) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s", u.Type, u.Name, u.Before, u.Class))
	}
	want := []string{"LISTED a  ", "LISTED b  ", "SYNCED   ", `MODIFIED a {"v":1} v`, "MODIFIED a  ", `DELETED a {"v":3} v`, "ADDED a  ",
		"LOST   ", `LISTED a {"v":5} v`, "SYNCED   ", "MODIFIED b  ", `MODIFIED a {"v":6} v`}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Who wrote: the entry with another time, or else the newest; and nobody where two are equally new.
func TestManagers(t *testing.T) {
	entry := func(manager, sub, at string) string {
		return fmt.Sprintf(`{"manager":%q,"operation":"Update","subresource":%q,"time":"2026-03-01T10:00:%sZ"}`, manager, sub, at)
	}
	for _, tc := range []struct {
		name          string
		before, after []string
		want          string
	}{
		{"another time", []string{entry("a", "", "01"), entry("b", "status", "09")}, []string{entry("a", "", "05"), entry("b", "status", "09")}, "a/"},
		{"a new one", []string{entry("a", "", "09")}, []string{entry("a", "", "09"), entry("b", "status", "05")}, "b/status"},
		{"none changed", []string{entry("a", "", "01"), entry("b", "status", "09")}, []string{entry("a", "", "01"), entry("b", "status", "09")}, "b/status"},
		{"none changed, equally new", []string{entry("a", "", "09"), entry("b", "", "09")}, []string{entry("a", "", "09"), entry("b", "", "09")}, "/"},
		{"the same manager twice", []string{entry("a", "", "01"), entry("a", "status", "01")}, []string{entry("a", "", "09"), entry("a", "status", "09")}, "a/"},
		{"none at all", nil, nil, "/"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b bytes.Buffer
			for i, entries := range [][]string{tc.before, tc.after} {
				object := fmt.Sprintf(`{"v":%d,"metadata":{"managedFields":[%s]}}`, i, strings.Join(entries, ","))
				b.Write(version(churn.Version{Time: began, Type: churn.Modified, Resource: "pods", Name: "a", UID: "1", Object: []byte(object)}))
			}
			var got string
			for u, err := range churn.Updates(&b) {
				if err != nil {
					t.Fatal(err)
				}
				got = u.Manager + "/" + u.Subresource
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestReadWhatIsNone(t *testing.T) {
	const head = `{"time":"2026-03-01T10:00:00Z","type":"MODIFIED","resource":"pods","name":"a"`
	for _, tc := range []struct{ line, want string }{
		{`nothing`, "version in line 2: it is no JSON"},
		{head, "version in line 2: it is no JSON"},
		{head + `}`, "version in line 2: it is MODIFIED and has no object or no name"},
		{head + `,"object":7}`, "version in line 2: object is 7 (want an object)"},
		{head + `,"uid":7,"object":{}}`, "version in line 2: uid is 7 (want a string)"},
		{`{"time":"now"}`, `version in line 2: time is "now" (want a time as in RFC 3339)`},
		{`{"type":"LOST"}`, "version in line 2: it has no time"},
		{`{"time":"2026-03-01T10:00:00Z","type":"LOST"}`, "version in line 2: it names no resource"},
		{`{"time":"2026-03-01T10:00:00Z","type":"ERROR","resource":"pods"}`, `version in line 2: its type is "ERROR", which is unknown`},
	} {
		good := `{"time":"2026-03-01T10:00:00Z","type":"SYNCED","resource":"pods"}`
		var said []string
		for v, err := range churn.Read(strings.NewReader(good + "\n" + tc.line + "\n" + good)) {
			if err != nil {
				said = append(said, err.Error())
			} else {
				said = append(said, v.Type)
			}
		}
		if d := cmp.Diff([]string{"SYNCED", tc.want, "SYNCED"}, said); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.line, d)
		}
	}
	r := io.MultiReader(bytes.NewReader(record(0)), iotest.ErrReader(io.ErrUnexpectedEOF))
	n := 0
	for _, err := range churn.Read(r) {
		if n++; n == 2 && (err == nil || err.Error() != "reading versions after line 2: unexpected EOF") {
			t.Errorf("got %v", err)
		}
	}
	if n != 2 {
		t.Errorf("it yielded %d times, want 2", n)
	}
}

func TestLongLines(t *testing.T) {
	v := churn.Version{Time: began, Type: churn.Added, Resource: "pods", Name: "a", Object: []byte(`{"v":"` + strings.Repeat("x", 1<<20) + `"}`)}
	for u, err := range churn.Updates(bytes.NewReader(append(version(v), record(0)...))) {
		if err != nil || u.Name == "a" && len(u.Object) != len(v.Object) {
			t.Errorf("%s has %d bytes, %v", u.Name, len(u.Object), err)
		}
	}
}

func TestSeriesAndGaps(t *testing.T) {
	at := func(s float64) time.Time { return began.Add(time.Duration(s * float64(time.Second))) }
	times := []time.Time{at(-1), at(0), at(0.5), at(2), at(7), at(10)}
	if d := cmp.Diff([]int{2, 0, 1, 0, 0, 0, 0, 1, 0, 0}, churn.Series(times, at(0), at(10), time.Second)); d != "" {
		t.Errorf("the series (-want +got):\n%s", d)
	}
	for _, tc := range []struct {
		from, to, gap, begin float64
	}{{0, 10, 5, 2}, {2.5, 6.5, 4, 2.5}, {-9, 10, 8, -9}, {0, 30, 20, 10}} {
		if gap, begin := churn.LongestGap(times, at(tc.from), at(tc.to)); gap.Seconds() != tc.gap || !begin.Equal(at(tc.begin)) {
			t.Errorf("from %g to %g the longest gap is %s at %s, want %gs at %s", tc.from, tc.to, gap, begin, tc.gap, at(tc.begin))
		}
	}
}
