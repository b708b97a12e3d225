package conformance_test

func init() {
	checks.add(checkCase{lacks: "an API server's count"}, "unchangedUpdates")
}
