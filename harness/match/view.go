package match

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// foreign is a View of evidence that has no phases, no cells and no plan. Everything in it is of one component.
type foreign struct {
	component string
	artifacts []bundle.Artifact
	dumps     map[string]*goroutine.Dump // by artifact
	lines     []line
	nodes     []bundle.NodeStatus
	window    bundle.Window
}

// Artifacts lists what matches; the cell doesn't matter.
func (f *foreign) Artifacts(q bundle.Query) (out []bundle.Artifact) {
	for _, a := range f.artifacts {
		other := q.Component != "" && f.component != "" && q.Component != f.component
		if (q.Kind == "" || q.Kind == a.Kind) && !other && q.Cell != bundle.Shared {
			out = append(out, a)
		}
	}
	return out
}

// Open writes what was kept of an artifact in the form of its kind.
func (f *foreign) Open(a bundle.Artifact) (io.ReadCloser, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	var err error
	switch a.Kind {
	case bundle.Logs:
		for _, l := range f.lines {
			err = enc.Encode(bundle.LogLine{Time: l.at, File: l.path, Text: l.text})
		}
	case bundle.Journal:
		for _, l := range f.lines {
			at := strconv.FormatInt(l.at.UnixMicro(), 10)
			err = enc.Encode(map[string]string{"__REALTIME_TIMESTAMP": at, "MESSAGE": l.text})
		}
	case bundle.Nodes:
		for _, n := range f.nodes {
			err = enc.Encode(n)
		}
	default:
		err = fmt.Errorf("reading %s: %s is not kept", a.Path, a.Kind)
	}
	return io.NopCloser(&b), err
}

// Remember has dumps already, and reads anything else each time.
func (f *foreign) Remember(a bundle.Artifact, as string, grow func(any, io.Reader) (any, error)) (any, error) {
	if d := f.dumps[a.Path]; d != nil && as == check.AsDump {
		return d, nil
	}
	r, err := f.Open(a)
	if err != nil {
		return nil, err
	}
	return grow(nil, r)
}

// Phase is all that there is, whatever its name.
func (f *foreign) Phase(string, string) (bundle.Window, bool) { return f.window, true }

// Timeline, Constant and World are a trial's, which this is not.
func (f *foreign) Timeline() []event.Event               { return nil }
func (f *foreign) Constant(string, string) (int64, bool) { return 0, false }
func (f *foreign) World() bundle.World                   { return bundle.World{} }

// add lists an artifact that covers the whole window. lost is how many lines of it are missing.
func (f *foreign) add(kind bundle.Kind, path string, skipped, lost int) {
	f.artifacts = append(f.artifacts, bundle.Artifact{
		Meta: bundle.Meta{Kind: kind, Component: f.component, Time: f.window.End}, Path: path, Skipped: skipped,
		Coverage: &bundle.Coverage{First: f.window.Start, Last: f.window.End, Suppressed: lost},
	})
}

// own is one cell of a bundle of relapse's own: its phases by their names, or all of it.
type own struct {
	bundle.View
	cell string
}

// Artifacts are those of the cell itself, and the objects that it shares with others.
func (o own) Artifacts(q bundle.Query) []bundle.Artifact {
	if q.Cell != o.cell && !(q.Cell == bundle.Shared && q.Kind == bundle.Objects) {
		return nil
	}
	return o.View.Artifacts(q)
}

// Phase is one of the trial's, or the whole trial.
func (o own) Phase(cell, phase string) (bundle.Window, bool) {
	if phase != whole {
		return o.View.Phase(cell, phase)
	}
	events := o.Timeline()
	if len(events) == 0 {
		return bundle.Window{}, false
	}
	w := bundle.Window{Start: events[0].Time, End: events[len(events)-1].Time.Add(time.Second)}
	if steady, ok := o.View.Phase(cell, check.Steady); ok { // collectors start with it
		w.Start = steady.Start
	}
	return w, true
}

// only is a view with one of its dumps.
type only struct {
	bundle.View
	dump string
}

// Artifacts leaves the other dumps out.
func (o only) Artifacts(q bundle.Query) []bundle.Artifact {
	return slices.DeleteFunc(slices.Clone(o.View.Artifacts(q)),
		func(a bundle.Artifact) bool { return a.Kind == bundle.Goroutines2 && a.Path != o.dump })
}
