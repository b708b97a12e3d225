package conformance_test

// These probes ask for pods and services only, which every cluster in memory has.
func init() {
	probes.add(probeCase{}, "podProbe", "probe", "serviceProbe")
}
