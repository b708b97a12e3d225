package conformance_test

func init() {
	collectors.add(collectorCase{spec: `{"resources":["bundles.fleet.cattle.io"]}`, target: ofWorkload, breaks: closeAPI}, "objectList")
}
