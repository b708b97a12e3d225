package conformance_test

func init() {
	checks.add(checkCase{lacks: "sizes"}, "costGrowth")
}
