package conformance_test

func init() {
	checks.add(checkCase{lacks: "no log of its own has the rows of a watch, which people take"}, "stampMoves")
}
