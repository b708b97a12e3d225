package stored_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/evidence/stored"
)

// Each row of the table has its case: the document as an earlier version wrote it, and as it is read today.
var rows = []struct {
	row           string // document, path, old word
	stored, today string
}{
	{"plan.json  relapse.dev/plan/v1alpha1", `{"schema":"relapse.dev/plan/v1alpha1"}`, `{"schema":"relapse.dev/plan/v1alpha2"}`},
	{"plan.json trials.* cells", `{"schema":"relapse.dev/plan/v1alpha1","trials":[{"cells":[]},{"cells":[{"node":"w"}]}]}`, `{"schema":"relapse.dev/plan/v1alpha2","trials":[{"arms":[]},{"arms":[{"node":"w"}]}]}`},
	{"plan.json trials.*.arms.* arm", `{"schema":"relapse.dev/plan/v1alpha1","trials":[{"cells":[{"name":"fixed","arm":{"name":"fixed","role":"fixed","source":{"version":"v1"}}}]}]}`,
		`{"schema":"relapse.dev/plan/v1alpha2","trials":[{"arms":[{"name":"fixed","role":"fixed","source":{"version":"v1"}}]}]}`},
	{"plan.json trials.*.manifests.* cell", `{"schema":"relapse.dev/plan/v1alpha1","trials":[{"manifests":[{"cell":"fixed","content":"cell"}]}]}`,
		`{"schema":"relapse.dev/plan/v1alpha2","trials":[{"manifests":[{"arm":"fixed","content":"cell"}]}]}`},
	{"plan.json trials.*.clusters.*.topology.nodes.* cell", `{"schema":"relapse.dev/plan/v1alpha1","trials":[{"clusters":[{"topology":{"nodes":[{"cell":"fixed"}]}}]}]}`,
		`{"schema":"relapse.dev/plan/v1alpha2","trials":[{"clusters":[{"topology":{"nodes":[{"arm":"fixed"}]}}]}]}`},
	{"plan.json trials.*.clusters.*.topology.nodes.*.labels relapse.dev/cell",
		`{"schema":"relapse.dev/plan/v1alpha1","trials":[{"clusters":[{"topology":{"nodes":[{"labels":{"relapse.dev/cell":"fixed"}}]}}]}]}`,
		`{"schema":"relapse.dev/plan/v1alpha2","trials":[{"clusters":[{"topology":{"nodes":[{"labels":{"relapse.dev/arm":"fixed"}}]}}]}]}`},
	{"plan.json trials.*.faults.*.target cell", `{"schema":"relapse.dev/plan/v1alpha1","trials":[{"faults":[{"target":{"cell":"fixed"}}]}]}`,
		`{"schema":"relapse.dev/plan/v1alpha2","trials":[{"faults":[{"target":{"arm":"fixed"}}]}]}`},
	{"plan.json trials.*.loads.*.target cell", `{"schema":"relapse.dev/plan/v1alpha1","trials":[{"loads":[{"target":{"cell":"fixed"}}]}]}`,
		`{"schema":"relapse.dev/plan/v1alpha2","trials":[{"loads":[{"target":{"arm":"fixed"}}]}]}`},
	{"plan.json trials.*.**.selector cell", `{"schema":"relapse.dev/plan/v1alpha1","trials":[{"faults":[{"target":{"selector":{"nodes":["cell","worker"]}}}]}]}`,
		`{"schema":"relapse.dev/plan/v1alpha2","trials":[{"faults":[{"target":{"selector":{"nodes":["arm","worker"]}}}]}]}`},
	{"plan.json trials.*.** cell", `{"schema":"relapse.dev/plan/v1alpha1","trials":[{"healed":[{"anyOf":[{"spec":{"namespace":"cell"}}]}]}]}`,
		`{"schema":"relapse.dev/plan/v1alpha2","trials":[{"healed":[{"anyOf":[{"spec":{"namespace":"arm"}}]}]}]}`},
	{"plan.json trials.*.** $(cell)", `{"schema":"relapse.dev/plan/v1alpha1","trials":[{"healed":[{"spec":{"name":"bundle-$(cell)"}}]}]}`,
		`{"schema":"relapse.dev/plan/v1alpha2","trials":[{"healed":[{"spec":{"name":"bundle-$(arm)"}}]}]}`},
	{"plan.json trials.*.** relapse.dev/cell", `{"schema":"relapse.dev/plan/v1alpha1","trials":[{"collectors":[{"spec":{"namespaceSelector":"relapse.dev/cell","of":["relapse.dev/cell=fixed"]}}]}]}`,
		`{"schema":"relapse.dev/plan/v1alpha2","trials":[{"collectors":[{"spec":{"namespaceSelector":"relapse.dev/arm","of":["relapse.dev/arm=fixed"]}}]}]}`},
	{"plan.json trials.*.faults.* csiNodeLoss", `{"trials":[{"faults":[{"name":"f","kind":"csiNodeLoss","spec":{}},{"kind":"nodePowerOff"}]}]}`,
		`{"trials":[{"faults":[{"name":"f","kind":"objects","spec":{"verb":"delete","undo":true,"manifests":[` +
			`{"apiVersion":"storage.k8s.io/v1","kind":"CSINode","metadata":{"name":"$(node)"}}]}},{"kind":"nodePowerOff"}]}]}`},
	{"plan.json trials.*.** loadCalls", `{"trials":[{"exposure":[{"anyOf":[{"name":"a","kind":"loadCalls","spec":{"load":"l","code":200,"atLeast":45}}]},{"name":"b","kind":"loadCalls","spec":{"load":"loadCalls","code":504}}]}]}`,
		`{"trials":[{"exposure":[{"anyOf":[{"name":"a","kind":"answers","spec":{"load":"l","codes":[200],"atLeast":45}}]},{"name":"b","kind":"answers","spec":{"load":"loadCalls","codes":[504],"atLeast":1}}]}]}`},
	{"plan.json trials.*.loads.* createConfigMaps", `{"trials":[{"loads":[{"name":"c","kind":"createConfigMaps","spec":{"calls":3,"timeout":"4s"}}]}]}`,
		`{"trials":[{"loads":[{"name":"c","kind":"requests","spec":{"calls":3,"rounds":30,"timeout":"4s","method":"POST","path":"/api/v1/namespaces/relapse-c/configmaps",` +
			`"body":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"item-$(n)"},"data":{"n":"number $(n)"}}}}]}]}`},
	{"plan.json trials.*.faults.* processPause",
		`{"schema":"relapse.dev/plan/v1alpha2","trials":[{"faults":[{"name":"still","kind":"processPause","spec":{"component":"etcd","atMost":"30s"}}]}]}`,
		`{"schema":"relapse.dev/plan/v1alpha2","trials":[{"faults":[{"name":"still","kind":"process","spec":{"action":"stop","component":"etcd","atMost":"30s"}}]}]}`},
	{"plan.json trials.*.** objectField", `{"trials":[{"healed":[{"name":"a","kind":"objectField","spec":{"resource":"nodes","fields":{"a":"b"}}},{"anyOf":[{"name":"b","kind":"objectField","spec":{"resource":"pods","absent":true,"hold":"1s"}}]}]}]}`,
		`{"trials":[{"healed":[{"name":"a","kind":"object","spec":{"resource":"nodes","fields":{"a":"b"},"hold":"5s"}},{"anyOf":[{"name":"b","kind":"object","spec":{"resource":"pods","absent":true,"hold":"1s"}}]}]}]}`},
	{"plan.json trials.*.loads.* schedulingProbe", `{"trials":[{"loads":[{"name":"pods","kind":"schedulingProbe","spec":{"timeout":"2m0s","pods":[{"name":"a","priorityClass":"high","gcePersistentDisk":"d1"}]}}]}]}`,
		`{"trials":[{"loads":[{"name":"pods","kind":"probe","spec":{"work":"pods that want a node","steps":[` +
			`{"name":"created","within":"2m0s","manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"priorityClassName":"high","tolerations":[{"operator":"Exists"}],` +
			`"containers":[{"name":"probe","image":"pause","imagePullPolicy":"Never"}],"volumes":[{"name":"disk","gcePersistentDisk":{"pdName":"d1"}}]}}]},` +
			`{"name":"a bound","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}},"expression":"has(object.spec.nodeName)","within":"2m0s"}]}}]}]}`},
	{"plan.json trials.*.faults.* hangingWebhook",
		`{"trials":[{"faults":[{"name":"w","kind":"hangingWebhook","spec":{"load":"creations","auditAnnotations":16000}},{"name":"v","kind":"hangingWebhook","spec":{"load":"c"}}]}]}`,
		`{"trials":[{"faults":[{"name":"w","kind":"webhook","spec":{"groups":[""],"resources":["configmaps"],"operations":["CREATE"],"namespaces":["relapse-creations"],"timeoutSeconds":30,"webhooks":[` +
			`{"name":"annotates-first","admission":"mutating","rules":[{"answer":{"allowed":true},"auditAnnotations":16000}]},` +
			`{"name":"annotates-last","admission":"validating","rules":[{"answer":{"allowed":true},"auditAnnotations":16000}]},` +
			`{"name":"hangs","admission":"validating","rules":[{"never":true}]}]}},` +
			`{"name":"v","kind":"webhook","spec":{"groups":[""],"resources":["configmaps"],"operations":["CREATE"],"namespaces":["relapse-c"],"timeoutSeconds":30,"webhooks":[` +
			`{"name":"annotates-first","admission":"mutating","rules":[{"answer":{"allowed":true}}]},` +
			`{"name":"annotates-last","admission":"validating","rules":[{"answer":{"allowed":true}}]},` +
			`{"name":"hangs","admission":"validating","rules":[{"never":true}]}]}}]}]}`},
	{"plan.json trials.*.faults.* etcdLatency",
		`{"trials":[{"faults":[{"name":"slow","kind":"etcdLatency","spec":{"latency":"1s"}},{"kind":"nodePowerOff"}]}]}`,
		`{"trials":[{"faults":[{"name":"slow","kind":"latency","spec":{"connection":"etcd","latency":"1s"}},{"kind":"nodePowerOff"}]}]}`},
	{"plan.json trials.*.faults.* etcdOutage",
		`{"trials":[{"faults":[{"name":"out","kind":"etcdOutage","spec":{"connections":"keep","atMost":"1m6s"}}]}]}`,
		`{"trials":[{"faults":[{"name":"out","kind":"outage","spec":{"connection":"etcd","connections":"keep","atMost":"1m6s"}}]}]}`},
	{"world.json  cells", `{"cells":[{"arm":"fixed"}]}`, `{"arms":[{"arm":"fixed"}]}`},
	{"world.json arms.* cell", `{"cells":[{"cell":"fixed","arm":"fixed"}]}`, `{"arms":[{"arm":"fixed"}]}`},
	{"manifest.json artifacts.* cell", `{"artifacts":[{"kind":"logs","cell":"fixed"},{"cell":"shared"}]}`,
		`{"artifacts":[{"kind":"logs","arm":"fixed"},{"arm":"shared"}]}`},
	{"a line of timeline.jsonl  cell", `{"type":"phase","cell":"fixed","message":"cell"}`, `{"type":"phase","arm":"fixed","message":"cell"}`},
}

func TestEveryRowOfTheTables(t *testing.T) {
	n := 0
	for _, table := range stored.Tables {
		for _, r := range table.Rows {
			if n >= len(rows) {
				t.Fatalf("%s %s %s has no case", table.Document, r.Where, r.Was)
			}
			c := rows[n]
			n++
			t.Run(c.row, func(t *testing.T) {
				if name := strings.Join([]string{string(table.Document), r.Where, r.Was}, " "); name != c.row {
					t.Fatalf("row %d is %q, and its case %q", n, name, c.row)
				}
				got, err := stored.Convert(table.Document, []byte(c.stored))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(parsed(t, c.today), parsed(t, string(got))); diff != "" {
					t.Errorf("it differs from what is wanted (-) by (+):\n%s", diff)
				}
				again, err := stored.Convert(table.Document, got)
				if err != nil || string(again) != string(got) {
					t.Errorf("converted once more: %s, %v", again, err)
				}
			})
		}
	}
	if n != len(rows) {
		t.Errorf("%d cases for %d rows", len(rows), n)
	}
}

func parsed(t *testing.T, s string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWhatIsLeftAsItIs(t *testing.T) {
	for name, c := range map[string]struct {
		document stored.Document
		text     string
	}{
		"today's words":          {stored.World, `{ "arms": [] }`},
		"no JSON":                {stored.Plan, `cells: of "relapse.dev/plan/v1alpha1"`},
		"today's plan":           {stored.Plan, `{"schema":"relapse.dev/plan/v1alpha2","title":"as \"relapse.dev/plan/v1alpha1\"","trials":[{"healed":[{"spec":{"namespace":"cell","was":"relapse.dev/plan/v1alpha1"}}]}]}`},
		"an arm of two sources":  {stored.Event, `{"arm":{"a":2},"cell":{"a":1}}`},
		"two documents":          {stored.World, `{"cells":[]} {"cells":[]}`},
		"digits":                 {stored.Event, `{"type":"note","monoNanos":12345678901234567890}`},
		"another document's":     {stored.Event, `{"type":"note","cells":1}`},
		"an arm of two names":    {stored.World, `{"arms":[{"arm":"fixed","cell":"other"}]}`},
		"both the words at once": {stored.Event, `{"arm":"fixed","cell":"other"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := stored.Convert(c.document, []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.text {
				t.Errorf("%s became %s", c.text, got)
			}
		})
	}
}

func TestASeedKeepsItsDigits(t *testing.T) {
	got, err := stored.Convert(stored.Plan, []byte(`{"schema":"relapse.dev/plan/v1alpha1","seed":9223372036854775807}`))
	if err != nil || !strings.Contains(string(got), "9223372036854775807") {
		t.Errorf("%s, %v", got, err)
	}
}

// A plan of the first version goes through both tables.
func TestAnOldPlanWithAnOldKind(t *testing.T) {
	const plan = `{"schema":"relapse.dev/plan/v1alpha1","trials":[{"faults":[{"kind":"processPause","target":{"cell":"a"},"spec":{"component":"etcd"}},{"kind":"nodePowerOff","spec":{}}]}]}`
	const want = `{"schema":"relapse.dev/plan/v1alpha2","trials":[{"faults":[{"kind":"process","target":{"arm":"a"},"spec":{"action":"stop","component":"etcd"}},{"kind":"nodePowerOff","spec":{}}]}]}`
	got, err := stored.Convert(stored.Plan, []byte(plan))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parsed(t, want), parsed(t, string(got))); diff != "" {
		t.Errorf("it differs from what is wanted (-) by (+):\n%s", diff)
	}
}

// Two objects are compared here, which Go can't do with ==.
func TestContradictionsAreLeftToTheReader(t *testing.T) {
	const plan = `{"schema":"relapse.dev/plan/v1alpha1","trials":[{"cells":[{"source":{"version":"v1"},"arm":{"source":{"version":"v2"}}}]}]}`
	got, err := stored.Convert(stored.Plan, []byte(plan))
	if err != nil || !strings.Contains(string(got), `"arm":{"source":{"version":"v2"}}`) {
		t.Errorf("%s, %v", got, err)
	}
	const world = `{"cells":[{"cell":{"name":"fixed"},"arm":{"name":"other"}}]}`
	if got, err = stored.Convert(stored.World, []byte(world)); err != nil || !strings.Contains(string(got), `"cell":{"name":"fixed"}`) {
		t.Errorf("%s, %v", got, err)
	}
}

// What is read may be anybody's: no document makes it panic, none grows without bound, and what comes out is JSON if
// what went in was.
func FuzzConvert(f *testing.F) {
	for _, r := range rows {
		f.Add(r.stored)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, table := range stored.Tables {
			got, err := stored.Convert(table.Document, []byte(raw))
			if err != nil {
				t.Fatal(err)
			}
			if json.Valid([]byte(raw)) != json.Valid(got) {
				t.Errorf("%s became %s", raw, got)
			}
		}
	})
}
