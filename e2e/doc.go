// Package e2e tests relapse on real clusters, through its public API and its command line only.
//
// Its specs carry the build tag cluster and need a container engine that can run privileged nodes. A spec that can't
// have its cluster fails. Specs with the label nightly are long, or repeat what a shorter one shows; `make test`
// leaves them out, and `make specs` runs them. The specs run in two processes at once (ginkgo --procs 2), because a
// spec mostly waits for its cluster.
//
// The specs of the oracle share one cluster, whose arms are the scenario's smoke pair. The pair's constants are
// compressed, and every verdict over it has to say so.
package e2e
