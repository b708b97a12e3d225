package manifest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/inject/manifest"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

func newClient(t *testing.T) (*clustertest.Cluster, *manifest.Client) {
	t.Helper()
	c := clustertest.New("manifest", cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "control-plane", Role: cluster.ControlPlane}}})
	t.Cleanup(c.Close)
	client, err := manifest.NewClient(c, "run", "item", "fixed")
	if err != nil {
		t.Fatal(err)
	}
	return c, client
}

// ask makes the request about the first manifest of a spec.
func ask(t *testing.T, c *manifest.Client, spec string) (manifest.Request, error) {
	t.Helper()
	var a manifest.Ask
	if err := json.Unmarshal([]byte(spec), &a); err != nil {
		t.Fatal(err)
	}
	if err := a.Validate(manifest.Arm, manifest.Number); err != nil {
		t.Fatal(err)
	}
	return c.Request(t.Context(), a, a.Manifests[0], manifest.Words{manifest.Arm: "fixed", manifest.Number: 7})
}

func TestWhereRequestsGo(t *testing.T) {
	f, c := newClient(t)
	f.API().AddKind(metav1.GroupVersionKind{Group: "fleet.cattle.io", Version: "v1", Kind: "Bundle"}, "bundles")
	const pod = `"manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p-$(n)"}}]`
	const service = `"manifests":[{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"of-$(arm)"}}]`
	for spec, want := range map[string]string{
		`{` + pod + `}`:                                       "CREATE /api/v1/namespaces/relapse-item-fixed/pods",
		`{"verb":"apply",` + pod + `}`:                        "APPLY /api/v1/namespaces/relapse-item-fixed/pods/p-7",
		`{"verb":"patch","subresource":"status",` + pod + `}`: "PATCH /api/v1/namespaces/relapse-item-fixed/pods/p-7/status",
		`{"verb":"delete",` + service + `}`:                   "DELETE /api/v1/namespaces/of-fixed/services/s",
		`{"verb":"deleteCollection",` + service + `}`:         "DELETECOLLECTION /api/v1/namespaces/of-fixed/services",
		`{"verb":"evict",` + pod + `}`:                        "CREATE /api/v1/namespaces/relapse-item-fixed/pods/p-7/eviction",
		`{"stored":true,` + pod + `}`:                         "STORE /registry/pods/relapse-item-fixed/p-7",
		`{"stored":true,` + service + `}`:                     "STORE /registry/services/specs/of-fixed/s",
		`{"stored":true,"verb":"delete",` + service + `}`:     "UNSTORE /registry/services/specs/of-fixed/s",
		`{"stored":true,"manifests":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}]}`:                   "STORE /registry/minions/n",
		`{"stored":true,"manifests":[{"apiVersion":"storage.k8s.io/v1","kind":"CSINode","metadata":{"name":"n"}}]}`: "STORE /registry/csinodes/n",
		`{"stored":true,"manifests":[{"apiVersion":"fleet.cattle.io/v1","kind":"Bundle","metadata":{"name":"b"}}]}`: "STORE /registry/fleet.cattle.io/bundles/relapse-item-fixed/b",
	} {
		r, err := ask(t, c, spec)
		if got := r.Verb + " " + r.Path; err != nil || got != want {
			t.Errorf("%s\ngot  %s, %v\nwant %s", spec, got, err, want)
		}
	}
	for spec, want := range map[string]string{
		`{"manifests":[{"apiVersion":"v1","kind":"Teapot","metadata":{"name":"p"}}]}`:    "Teapot p: the API server has no kind Teapot in v1",
		`{"manifests":[{"apiVersion":"batch/v9","kind":"Job","metadata":{"name":"p"}}]}`: "Job p: the API server has no batch/v9",
	} {
		if _, err := ask(t, c, spec); err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", spec, err, want)
		}
	}
}

// An answer says what the API server said, and a number that is filled in stays a text.
func TestAnswers(t *testing.T) {
	f, c := newClient(t)
	f.API().AddNamespace("relapse-item-fixed", nil)
	spec := `{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":{"touched":"$(n)"}}}]}`
	for _, want := range []struct {
		code   int
		reason metav1.StatusReason
		says   string
	}{{200, "", ""}, {409, metav1.StatusReasonAlreadyExists, `configmaps "a" already exists`}} {
		r, err := ask(t, c, spec)
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.Do(t.Context(), r)
		if a.Code != want.code || a.Reason != want.reason || (err == nil) != (want.says == "") || err != nil && !strings.Contains(err.Error(), want.says) {
			t.Errorf("answered %d %s, %v, want %+v", a.Code, a.Reason, err, want)
		}
		if have, err := c.Get(t.Context(), r.Object); err != nil || have.GetAnnotations()["touched"] != "7" || have.GetLabels()["relapse.dev/run"] != "run" {
			t.Errorf("it is %+v, %v", have, err)
		}
	}
}

// A cluster whose etcd nobody may ask can't have anything stored past its API server.
func TestNothingIsStoredWithoutEtcd(t *testing.T) {
	c := shut{clustertest.New("manifest", cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "control-plane", Role: cluster.ControlPlane}}})}
	t.Cleanup(c.Close)
	client, err := manifest.NewClient(c, "run", "item", "fixed")
	if err != nil {
		t.Fatal(err)
	}
	r, err := ask(t, client, `{"stored":true,"verb":"apply","manifests":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	const want = "cluster manifest doesn't let anyone write into its etcd (want a kind cluster or one of processes)"
	if a, err := client.Do(t.Context(), r); err == nil || err.Error() != want || a.Code != 0 {
		t.Errorf("got  %d %v\nwant %s", a.Code, err, want)
	}
}

// shut is a cluster whose etcd can't be asked.
type shut struct{ *clustertest.Cluster }

func (shut) Abilities() cluster.ClusterAbilities { return cluster.ClusterAbilities{} }

// What stands in etcd is changed only as it was read: a write in between is nobody's to undo.
func TestPatchesOfWhatIsStored(t *testing.T) {
	f, c := newClient(t)
	const service = `"manifests":[{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"of","annotations":{"n":"$(n)"}}}]`
	do := func(verb string) (manifest.Answer, error) {
		t.Helper()
		r, err := ask(t, c, `{"stored":true,"verb":"`+verb+`",`+service+`}`)
		if err != nil {
			t.Fatal(err)
		}
		return c.Do(t.Context(), r)
	}
	for _, step := range []struct {
		verb string
		code int
		says string
	}{
		{"patch", 404, "etcd has no /registry/services/specs/of/s"},
		{"create", 200, ""},
		{"create", 409, "etcd has /registry/services/specs/of/s already"},
		{"patch", 200, ""},
		{"delete", 200, ""},
		{"patch", 404, "etcd has no /registry/services/specs/of/s"},
	} {
		a, err := do(step.verb)
		if a.Code != step.code || (err == nil) != (step.says == "") || err != nil && err.Error() != step.says {
			t.Errorf("%s is answered with %d, %v, want %+v", step.verb, a.Code, err, step)
		}
	}
	if _, err := do("create"); err != nil {
		t.Fatal(err)
	}
	meddled := meddling{f}
	other, err := manifest.NewClient(meddled, "run", "item", "fixed")
	if err != nil {
		t.Fatal(err)
	}
	r, err := ask(t, other, `{"stored":true,"verb":"patch",`+service+`}`)
	if err != nil {
		t.Fatal(err)
	}
	a, err := other.Do(t.Context(), r)
	if want := "/registry/services/specs/of/s was written by somebody else just now"; a.Code != 409 || err == nil || err.Error() != want {
		t.Errorf("a write in between: %d, %v, want %s", a.Code, err, want)
	}
}

// meddling is a cluster in which somebody writes the key that was just read.
type meddling struct{ *clustertest.Cluster }

func (m meddling) Abilities() cluster.ClusterAbilities {
	real := m.Cluster.Abilities().Etcd
	return cluster.ClusterAbilities{Etcd: func(ctx context.Context, path string, body []byte) ([]byte, error) {
		out, err := real(ctx, path, body)
		if path == "/v3/kv/range" && err == nil {
			var of struct{ Kvs []struct{ Key, Value []byte } }
			if err := json.Unmarshal(out, &of); err != nil {
				return nil, err
			}
			again, err := json.Marshal(of.Kvs[0])
			if err != nil {
				return nil, err
			}
			if _, err := real(ctx, "/v3/kv/put", again); err != nil {
				return nil, err
			}
		}
		return out, err
	}}
}
