// A scenario as a test, as docs/library.md has it. go vet compiles it with the other tests. To run, it takes a checkout of
// Kubernetes two folders above.
package kubernetes_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/relapsetest"
)

func TestNoGoroutineLeak(t *testing.T) {
	relapsetest.Run(t, "apiserver-goroutine-leak", relapsetest.Candidate("src:../.."))
}
