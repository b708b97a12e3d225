package main

import (
	"fmt"
	"path/filepath"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/kind"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/ledger"
)

// newProvider makes the provider of a name; "" is the default, kind. The private files of its clusters lie beside the
// notes of the runs.
func newProvider(name string, events *event.Stream, retain bool) (cluster.Provider, error) {
	if name != "" && name != "kind" {
		return nil, fmt.Errorf("there is no provider %q: want kind", name)
	}
	return newKind(events, retain)
}

func newKind(events *event.Stream, retain bool) (*kind.Provider, error) {
	state, err := ledger.StateDir()
	if err != nil {
		return nil, err
	}
	return kind.New(kind.Options{Dir: filepath.Join(filepath.Dir(state), "clusters"), Events: events, Retain: retain})
}

// keepers are the providers that may keep something between runs.
func keepers() ([]cluster.Keeper, error) {
	k, err := newKind(nil, false)
	return []cluster.Keeper{k}, err
}
