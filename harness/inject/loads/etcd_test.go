package loads_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/inject/loads"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func etcdOf(t *testing.T, steps string) *loads.Etcd {
	t.Helper()
	l, err := kinds.Decode[load.Load](kinds.Load, "etcd", json.RawMessage(`{"steps":[`+steps+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	return l.(*loads.Etcd)
}

func TestStreamsOfEtcdInASpec(t *testing.T) {
	const open, end = `{"put":{"key":"a"}},{"open":{"key":"b","watches":1,"from":"put","ahead":9}},`, `,{"close":{"of":"open"}}`
	for _, tc := range []struct{ steps, says string }{
		{open + `{"progress":{"of":"open","within":"1s"}}` + end, "1 rounds of 4 requests to etcd: put a, open b, progress, close"},
		{open + `{"progress":{"of":"open","within":"0s"}}` + end, "steps[2] is read within 0s (want above 0 and below 30s)"},
		{open + `{"progress":{"of":"open","within":"30s"}}` + end, "steps[2] is read within 30s (want above 0 and below 30s)"},
		{`{"put":{"key":"a"}},{"watch":{"key":"a","from":"put","within":"40s"}}`, "steps[1] is read within 40s (want above 0 and below 30s)"},
		{open + `{"progress":{"of":"put","within":"1s"}}` + end, `steps[2]: "put" is no stream that is open by then`},
		{open + `{"pause":"1s","progress":{"of":"open","within":"1s"}}` + end,
			"steps[2] does 2 things (want one of put, delete, compact, watch, open, progress, cancel, close, addMember, " +
				"updateMember, removeMember, members and pause)"},
		{`{"open":{"key":"b","watches":1,"ahead":9}}` + end, `steps[0] is 9 revisions ahead of "" (want 0 or more, with from)`},
		{`{"open":{"key":"b","watches":1,"from":"put"}}` + end, `steps[0]: "put" is no put or delete before it`},
	} {
		l := etcdOf(t, tc.steps)
		says := l.Describe()
		if err := l.Validate(); err != nil {
			says = err.Error()
		}
		if says != tc.says {
			t.Errorf("%s\ngot  %s\nwant %s", tc.steps, says, tc.says)
		}
	}
}

// A stream that has nothing to say about its progress can be asked again, and is.
func TestProgressOfStreams(t *testing.T) {
	w := newWorld(t)
	l := etcdOf(t, `{"name":"begin","put":{"key":"a"}},{"open":{"key":"b","watches":2,"from":"begin","ahead":2}},`+
		`{"name":"too-early","progress":{"of":"open","within":"50ms"}},{"name":"one","put":{"key":"a"}},{"name":"two","put":{"key":"a"}},`+
		`{"name":"in-time","progress":{"of":"open","within":"10s"}},{"cancel":{"of":"open","confirmed":"10s"}},{"close":{"of":"open"}}`)
	if err := l.Run(t.Context(), w.target(), w.w); err != nil {
		t.Fatal(err)
	}
	calls, _, _ := w.recorded(t)
	var got []string
	for _, c := range calls {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %d %t %s", c.Verb, c.Code, c.GaveUp, c.Error)))
	}
	want := []string{"put 200 false", "open 200 false", "progress 0 true reading up to where the watches are: the time that the load gives a call was up", "put 200 false",
		"put 200 false", "progress 200 false", "cancel 200 false", "close 200 false"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if path := calls[2].Path; path != "/too-early" {
		t.Errorf("the request without a key has the path %q", path)
	}
}
