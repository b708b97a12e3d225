package conformance_test

func init() {
	collectors.add(collectorCase{
		spec:   `{"resources":["bundledeployments.fleet.cattle.io","bundles.fleet.cattle.io"],"interval":"200ms"}`,
		target: ofWorkload, breaks: closeAPI,
	}, "objects")
}
