package conformance_test

func init() {
	collectors.add(collectorCase{breaks: closeAPI}, "nodeConditions")
}
