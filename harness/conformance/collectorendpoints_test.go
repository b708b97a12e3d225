package conformance_test

func init() {
	collectors.add(collectorCase{breaks: failEndpoints}, "goroutines", "heap")
	collectors.add(collectorCase{spec: `{"seconds":1}`, breaks: failEndpoints}, "cpu")
	collectors.add(collectorCase{
		spec: `{"families":["seen_seconds","grows_total","stands_total","took_seconds"],"interval":"200ms"}`, breaks: failEndpoints,
	}, "metrics")
	collectors.add(collectorCase{spec: `{"interval":"200ms"}`, breaks: failEndpoints, answers: errBroken.Error()}, "health")
}
