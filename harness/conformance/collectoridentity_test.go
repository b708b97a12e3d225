package conformance_test

func init() {
	collectors.add(collectorCase{breaks: powerOff}, "identity")
}
