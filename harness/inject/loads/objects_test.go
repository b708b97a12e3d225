package loads_test

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/inject/loads"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func objectsOf(t *testing.T, spec string) *loads.Objects {
	t.Helper()
	l, err := kinds.Decode[load.Load](kinds.Load, "objects", json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	return l.(*loads.Objects)
}

func TestObjectsSpec(t *testing.T) {
	const pod = `"manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p-$(n)"}}]`
	for _, tc := range []struct{ spec, says string }{
		{`{` + pod + `}`, "create Pod p-$(n)"},
		{`{"verb":"patch","subresource":"status","count":3,` + pod + `}`, "3 times: patch Pod p-$(n), subresource status"},
		{`{"verb":"apply","stored":true,"rounds":4,"pause":"2s",` + pod + `}`, "4 rounds, 2s apart, of: apply Pod p-$(n), in etcd past the API server"},
		{`{}`, "manifests is empty (want at least one object)"},
		{`{"manifests":[{"kind":"Pod"}]}`, "manifests[0] has no apiVersion (want one such as v1 or apps/v1)"},
		{`{"manifests":[{"apiVersion":"v1"}]}`, "manifests[0] has no kind (want one such as ConfigMap)"},
		{`{"manifests":[{"apiVersion":"v1","kind":"Pod"}]}`, "manifests[0], a Pod, has no metadata.name"},
		{`{"manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"$(node)"}}]}`, "manifests[0] refers to $(node), which nothing replaces (want $(arm), $(n))"},
		{`{"verb":"update",` + pod + `}`, `verb is "update" (want one of create, apply, patch, delete, deleteCollection, evict)`},
		{`{"verb":"delete","subresource":"status",` + pod + `}`, `subresource is "status" with verb delete (want it with create, apply or patch)`},
		{`{"patchType":"merge",` + pod + `}`, `patchType is "merge" with verb create (want it with patch)`},
		{`{"verb":"patch","patchType":"xml",` + pod + `}`, `patchType is "xml" (want merge, strategic or json)`},
		{`{"verb":"patch","patchType":"json",` + pod + `}`, `patch has 0 operations and patchType is "json" (want operations with json, and only there)`},
		{`{"verb":"evict","stored":true,` + pod + `}`, "stored is set with verb evict (want it with create, apply, delete or a merging patch)"},
		{`{"count":0,` + pod + `}`, "count is 0 (want at least 1)"},
		{`{"concurrency":0,` + pod + `}`, "concurrency is 0 (want at least 1)"},
		{`{"rate":-1,` + pod + `}`, "rate is -1 requests a second (want 0 for no limit, or more)"},
		{`{"timeout":"0s",` + pod + `}`, "timeout is 0s (want above 0)"},
		{`{"rounds":0,` + pod + `}`, "rounds is 0 (want at least 1)"},
		{`{"pause":"-1s",` + pod + `}`, "pause is -1s (want 0 or more)"},
	} {
		l := objectsOf(t, tc.spec)
		says := l.Describe()
		if err := l.Validate(); err != nil {
			says = err.Error()
		}
		if says != tc.says {
			t.Errorf("%s\ngot  %s\nwant %s", tc.spec, says, tc.says)
		}
	}
}

// What is stored goes past the API server, as it is written down, and the API server serves it.
func TestObjectsThatAreStored(t *testing.T) {
	w := newWorld(t)
	l := objectsOf(t, `{"verb":"apply","stored":true,"rounds":2,"manifests":[{"apiVersion":"v1","kind":"Service",`+
		`"metadata":{"name":"old","annotations":{"touched":"$(n)"}},"spec":{"clusterIP":"None"}}]}`)
	if err := l.Prepare(t.Context(), w.target()); err != nil {
		t.Fatal(err)
	}
	if err := l.Run(t.Context(), w.target(), w.w); err != nil {
		t.Fatal(err)
	}
	have, err := w.client.CoreV1().Services("relapse-deletions-vulnerable").Get(t.Context(), "old", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if have.Annotations["touched"] != "1" || len(have.Labels) > 0 || have.Spec.Type != "" || have.UID == "" || have.CreationTimestamp.IsZero() {
		t.Errorf("it is stored as %+v", have)
	}
	for _, want := range []string{"1 began", "1 over", "2 began", "2 over"} {
		if got := controltest.Soon(t, want, w.told); got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	}
}

// A key that the API server doesn't read is a load without effect, which must not pass for one that ran.
func TestStoredWhereNobodyReadsIt(t *testing.T) {
	w := newWorld(t)
	l := objectsOf(t, `{"verb":"apply","stored":true,"manifests":[{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"old"}}]}`)
	err := l.Run(t.Context(), w.target(), w.w)
	if want := "load deletions: Namespace old was written to etcd at /registry/namespaces/old, and the API server doesn't serve it"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestProbesThatProveNothingAreRefused(t *testing.T) {
	const make, pod = `{"name":"made","manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}]}`, `"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`
	for steps, want := range map[string]string{
		make: "no step waits for an object: the probe would be done whatever the component does",
		make + `,{"name":"gone","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"q"}},"gone":true}`:                                                           "steps[1]: no step before it makes Pod q of v1 or waits for it (want one: what never was there is gone, too)",
		`{"name":"gone",` + pod + `,"gone":true},` + make:                                                                                                                 "steps[0]: no step before it makes Pod p of v1 or waits for it (want one: what never was there is gone, too)",
		make + `,{"name":"bound",` + pod + `}`:                                                                                                                            "steps[1]: want an expression that becomes true of the object, or gone",
		make + `,{"name":"bound",` + pod + `,"expression":"object.x +"}`:                                                                                                  "steps[1]: expression, line 1, column 11: Syntax error",
		make + `,{"name":"gone",` + pod + `,"gone":true}`:                                                                                                                 "",
		`{"name":"bound","manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}],"expression":"has(object.spec)"}`:                                         "",
		`{"name":"bound","manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"p"}}],"expression":"has(object.spec)"}`:                                 "steps[0]: what is waited for: manifests[0], a Pod, has no metadata.name",
		`{"name":"gone","verb":"delete","manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}],"gone":true}`:                                              "steps[0]: no step before it makes Pod p of v1",
		`{"name":"there","manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"of":"$(arm)"}}}],"expression":"object.metadata.labels.of != ''"}`: "steps[0]: expression is true of Pod p of v1 as it is sent: no component has to do anything (want what only the component does)",
		make + `,{"name":"there",` + pod + `,"expression":"object.metadata.name == 'p'"}`:                                                                                 "steps[1]: expression is true of Pod p of v1 as it is sent",
		make + `,{"name":"gone","manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}],"gone":true}`:                                                      `steps[1]: gone is given with manifests and the verb "" (want delete)`,
		make + `,{"name":"bound","verb":"delete","manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}],"expression":"has(object.spec)"}`:                 "steps[1]: expression is given with the verb delete",
		make + `,{"name":"gone","verb":"delete","manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}],"gone":true}`:                                      "",
		`{"name":"bound",` + pod + `,"expression":"has(object.spec)"},{"name":"gone",` + pod + `,"gone":true}`:                                                            "",
	} {
		l, err := kinds.Decode[load.Load](kinds.Load, "probe", json.RawMessage(`{"work":"a pod comes and goes","steps":[`+steps+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		err = l.(*loads.ObjectProbe).Validate()
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", steps, err, want)
		}
	}
}
