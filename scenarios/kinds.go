// Package scenarios links every kind: those of the shared packages, and those that stand beside the one scenario that
// they make sense for. A program that reads scenarios, runs them or judges their evidence imports this package, so that
// every kind is registered.
package scenarios

import (
	_ "github.com/kube-relapse/relapse/harness/build/mutate"
	_ "github.com/kube-relapse/relapse/harness/check/expr"
	_ "github.com/kube-relapse/relapse/harness/check/goroutines"
	_ "github.com/kube-relapse/relapse/harness/check/logs"
	_ "github.com/kube-relapse/relapse/harness/check/metrics"
	_ "github.com/kube-relapse/relapse/harness/check/objects"
	_ "github.com/kube-relapse/relapse/harness/check/probes"
	_ "github.com/kube-relapse/relapse/harness/cluster/seams"
	_ "github.com/kube-relapse/relapse/harness/evidence/collectors"
	_ "github.com/kube-relapse/relapse/harness/inject/faults"
	_ "github.com/kube-relapse/relapse/harness/inject/loads"
	_ "github.com/kube-relapse/relapse/scenarios/apiserver-goroutine-leak/kinds"
	_ "github.com/kube-relapse/relapse/scenarios/concurrent-map-crash/kinds"
	_ "github.com/kube-relapse/relapse/scenarios/fleet-status-churn/kinds"
	_ "github.com/kube-relapse/relapse/scenarios/kube-proxy-node-addresses/kinds"
	_ "github.com/kube-relapse/relapse/scenarios/listener-busy-wait/kinds"
	_ "github.com/kube-relapse/relapse/scenarios/pleg-deadlock/kinds"
	_ "github.com/kube-relapse/relapse/scenarios/service-workers-stuck/kinds"
)
