package conformance_test

func init() {
	loads.add(loadCase{spec: `{"set":"s","services":5,"changes":3,"every":"20ms","rounds":2}`, calls: 3}, "endpointChanges")
}
