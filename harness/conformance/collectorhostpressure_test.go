package conformance_test

func init() {
	collectors.add(collectorCase{spec: `{"interval":"200ms"}`, broken: `{"interval":"200ms","proc":"/no/such/proc"}`}, "hostPressure")
}
