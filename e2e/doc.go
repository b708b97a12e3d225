// Package e2e tests relapse on real clusters, through its public API and its command line only.
//
// Its specs need a container engine that can run privileged nodes and carry the build tag cluster. A spec that can't
// have its cluster fails. Specs with the label nightly are long, or repeat what a shorter one shows; `make test` leaves
// them out, and `make specs` runs them. They run in two processes beside each other (ginkgo --procs 2): mostly a spec waits for its cluster.
//
// The specs of the oracle share one cluster, whose arms are the scenario's smoke pair: its constants are compressed, and
// every verdict over it has to say so.
package e2e
