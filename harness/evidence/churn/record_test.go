package churn_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

// began is when the generated records begin.
var began = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// bundleDeployment is one of about 5 KB, as a loop leaves it after its nth write.
func bundleDeployment(n int) []byte {
	stamp := began.Add(time.Duration(n) * 2 * time.Second).Format(time.RFC3339)
	type m = map[string]any
	owned := m{}
	for _, f := range []string{"appliedDeploymentID", "conditions", "display", "nonModified", "nonReadyStatus", "ready", "release", "resources", "syncGeneration"} {
		owned["f:"+f] = m{".": m{}, "k:{\"type\":\"Monitored\"}": m{".": m{}, "f:lastUpdateTime": m{}, "f:status": m{}, "f:type": m{}}, "f:state": m{}}
	}
	var resources []any
	for i := range 8 {
		resources = append(resources, m{"apiVersion": "apps/v1", "kind": "DaemonSet", "namespace": "workload", "name": fmt.Sprintf("node-agent-%d", i),
			"uid": fmt.Sprintf("7b1e12c4-0000-4000-8000-0000000000%02d", i), "createdAt": "2026-03-01T09:00:00Z"})
	}
	conditions := []any{
		m{"type": "Installed", "status": "True", "lastUpdateTime": "2026-03-01T09:00:00Z"},
		m{"type": "Deployed", "status": "True", "lastUpdateTime": "2026-03-01T09:00:00Z"},
		m{"type": "Ready", "status": "False", "lastUpdateTime": "2026-03-01T09:30:00Z", "message": "daemonset.apps workload/node-agent-0 [progressing] Available: 1/2"},
		m{"type": "Monitored", "status": "True", "lastUpdateTime": stamp},
	}
	entry := func(manager, subresource, at string, fields any) m {
		return m{"manager": manager, "operation": "Update", "subresource": subresource, "apiVersion": "fleet.cattle.io/v1alpha1", "time": at, "fieldsType": "FieldsV1",
			"fieldsV1": fields}
	}
	b, err := json.Marshal(m{
		"apiVersion": "fleet.cattle.io/v1alpha1", "kind": "BundleDeployment",
		"metadata": m{
			"name": "workload", "namespace": "arm-vulnerable", "uid": "0f3b8f6e-5a0c-4e3f-9a36-111111111111", "generation": 1,
			"resourceVersion": fmt.Sprint(10_000 + 7*n), "creationTimestamp": "2026-03-01T09:00:00Z", "labels": m{"app.kubernetes.io/name": "workload"},
			"managedFields": []any{
				entry("relapse", "", "2026-03-01T09:00:00Z", m{"f:spec": m{"f:deploymentID": m{}, "f:options": m{"f:helm": m{"f:chart": m{}, "f:values": m{}}}}}),
				entry("fleet-agent-vulnerable", "status", stamp, m{"f:status": owned}),
			},
		},
		"spec": m{"deploymentID": "s-" + strings.Repeat("a1b2", 16), "options": m{"helm": m{"chart": "workload", "values": m{"replicas": 2, "image": "workload:1"}}}},
		"status": m{
			"appliedDeploymentID": "s-" + strings.Repeat("a1b2", 16), "conditions": conditions, "resources": resources, "ready": false, "nonModified": true,
			"nonReadyStatus": []any{m{"uid": "7b1e12c4-0000-4000-8000-000000000000", "kind": "DaemonSet", "apiVersion": "apps/v1", "namespace": "workload", "name": "node-agent-0",
				"summary": m{"state": "in-progress", "transitioning": true, "message": []any{"Available: 1/2"}}}},
		},
	})
	if err != nil {
		panic(err)
	}
	return b
}

// version is a line of a record.
func version(v churn.Version) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return append(b, '\n')
}

// record is an object that was listed and then written n times, every two seconds.
func record(n int) []byte {
	var out bytes.Buffer
	v := churn.Version{Time: began, Type: churn.Listed, Resource: "bundledeployments.fleet.cattle.io", Namespace: "arm-vulnerable", Name: "workload",
		UID: "0f3b8f6e-5a0c-4e3f-9a36-111111111111"}
	for i := range n + 1 {
		v.Time, v.ResourceVersion, v.Object = began.Add(time.Duration(i)*2*time.Second), fmt.Sprint(10_000+7*i), bundleDeployment(i)
		out.Write(version(v))
		v.Type = churn.Modified
	}
	return out.Bytes()
}
