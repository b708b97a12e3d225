package relapsetest_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/relapsetest"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// A scenario as a test: does the build in this checkout still have the bug?
func ExampleRun() {
	test := func(t *testing.T) { // func TestNoGoroutineLeak(t *testing.T)
		relapsetest.Run(t, "apiserver-goroutine-leak",
			relapsetest.Candidate("src:../.."),
			relapsetest.Provider("processes"))
	}
	_ = test
}

// A test that shows that a scenario knows its bug: a build without the fix is still vulnerable.
func ExampleWant() {
	test := func(t *testing.T) {
		r := relapsetest.Run(t, "policy-type-check-crash",
			relapsetest.Candidate("release:v1.34.1"),
			relapsetest.Runs(t.ArtifactDir()),
			relapsetest.Want(verdict.StillVulnerable))
		t.Logf("kept in %s", r.Dir)
	}
	_ = test
}
