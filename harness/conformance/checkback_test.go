package conformance_test

func init() {
	checks.add(checkCase{lacks: "a baseline"}, "goroutinesBack", "heapBack", "cpuBack")
}
