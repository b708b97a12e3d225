package loads_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/inject/loads"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func TestSpec(t *testing.T) {
	for _, tc := range []struct{ spec, says string }{
		{`{}`, "20 DELETECOLLECTION calls at once on 1000 ConfigMaps of 2Ki"},
		{`{"rounds":3,"rate":2.5}`, "3 rounds of: 20 DELETECOLLECTION calls at 2.5 a second on 1000 ConfigMaps of 2Ki"},
		{
			`{"by":"namespaceController","calls":5}`,
			"5 namespaces of 1000 ConfigMaps of 2Ki each are deleted at once, their contents by the namespace controller, watched for up to 45s",
		},
		{`{"by":"hand"}`, `by is "hand" (want calls or namespaceController)`},
		{`{"items":0}`, "items is 0 (want 1 to 100000)"},
		{`{"items":100001}`, "items is 100001 (want 1 to 100000)"},
		{`{"calls":0}`, "calls is 0 (want at least 1)"},
		{`{"rounds":0}`, "rounds is 0 (want at least 1)"},
		{`{"rate":-1}`, "rate is -1 requests a second (want 0 for all at once, or more)"},
		{`{"items":10}`, "begun is 20 deletions (want 1 to 10, which is all there can be)"},
		{`{"begun":0}`, "begun is 0 deletions (want 1 to 1000, which is all there can be)"},
		{`{"timeout":"0s"}`, "timeout is 0s (want above 0)"},
		{`{"pause":"-1s"}`, "pause is -1s (want 0 or more)"},
		{`{"lasts":"0s"}`, "lasts is 0s (want above 0)"},
		{`{"bytes":"2 KB"}`, `bytes is "2 KB" (want a quantity such as 2Ki): quantities must match the regular expression`},
		{`{"bytes":"513Ki"}`, "bytes is 513Ki (want 1 to 512Ki)"},
		{`{"bytes":"0"}`, "bytes is 0 (want 1 to 512Ki)"},
		{
			`{"by":"namespaceController","calls":20,"items":5000,"bytes":"16Ki","rounds":2}`,
			"2 rounds of 20 namespaces with 5000 items of 16Ki write 3.05 GiB (want at most 1.5 GiB: etcd's default quota is 2 GiB)",
		},
	} {
		l, err := kinds.Decode[load.Load](kinds.Load, "deleteCollection", json.RawMessage(tc.spec))
		if err != nil {
			t.Fatal(err)
		}
		d := l.(*loads.DeleteCollection)
		says := d.Describe()
		if err := d.Validate(); err != nil {
			says = err.Error()
		}
		if !strings.HasPrefix(says, tc.says) {
			t.Errorf("%s\ngot  %s\nwant %s", tc.spec, says, tc.says)
		}
		if got := d.Makes(); !slices.Equal(got, []bundle.Kind{bundle.Calls, bundle.LoadSummary}) {
			t.Errorf("it makes %q", got)
		}
	}
}
