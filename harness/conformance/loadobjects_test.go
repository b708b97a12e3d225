package conformance_test

func init() {
	loads.add(loadCase{spec: `{"count":3,"rounds":2,"manifests":[` +
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"of-$(arm)-$(n)"},"data":{"n":"$(n)"}}]}`, calls: 3}, "objects")
	loads.add(loadCase{spec: `{"count":2,"rounds":2,"concurrency":2,"pause":"10ms","manifests":[` +
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a-$(n)"}},` +
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b-$(n)"}}]}`, calls: 4}, "objects")
}
