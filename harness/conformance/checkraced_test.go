package conformance_test

func init() {
	checks.add(checkCase{flags: []string{"-race"}}, "raced")
}
