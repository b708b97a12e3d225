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
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// view is evidence that checks can be asked of.
type view interface {
	bundle.View
	// about returns the view for a check that reads these kinds. In evidence without phases, the window of every phase
	// is that of these kinds.
	about([]bundle.Kind) bundle.View
	// clock returns the name of the clock that told when an artifact was taken, "" if none did. Times of two clocks
	// can't be compared.
	clock(bundle.Artifact) string
}

// foreign is a View of evidence that has no phases, no arms and no plan. Everything in it is of one component.
type foreign struct {
	component string
	artifacts []bundle.Artifact
	dumps     map[string]*goroutine.Dump // by artifact
	profiles  map[string][]byte          // by artifact
	lines     []line
	passed    int // lines that were not kept, because no check asked for them
	nodes     []bundle.NodeStatus
	statuses  []bundle.ContainerStatus
	samples   map[string][]bundle.MetricSample // by artifact
	process   map[string]bundle.IdentitySample // by artifact
	clocks    map[string]string                // by artifact, of dumps
	heads     map[string]map[uint64]int        // by artifact, of dumps: the lines of goroutines, by their ids
	parts     map[string]string                // by artifact: why a dump or a profile may be only a part
	windows   map[bundle.Kind]bundle.Window
	asked     []bundle.Kind
}

func (f *foreign) about(kinds []bundle.Kind) bundle.View {
	one := *f
	one.asked = kinds
	return &one
}

// with returns a view of the same evidence in which there are only these artifacts.
func (f *foreign) with(artifacts []bundle.Artifact) *foreign {
	one := *f
	one.artifacts = artifacts
	return &one
}

func (f *foreign) clock(a bundle.Artifact) string { return f.clocks[a.Path] }

// lacks says that a check wants all lines of logs and some were not kept, "" if the check has what it wants.
func (f *foreign) lacks(k check.Check) string {
	if _, picks := k.(check.LinePicker); picks || !readsLogs(k) || f.passed == 0 {
		return ""
	}
	return fmt.Sprintf(
		"%d lines of its logs weren't kept, and this asks for all of them",
		f.passed,
	)
}

// Artifacts lists the artifacts that match. The arm of q is ignored, except that nothing matches Shared.
func (f *foreign) Artifacts(q bundle.Query) (out []bundle.Artifact) {
	for _, a := range f.artifacts {
		other := q.Component != "" && f.component != "" && q.Component != f.component
		outside := !q.From.IsZero() && a.Time.Before(q.From) ||
			!q.To.IsZero() && a.Time.After(q.To)
		if (q.Kind == "" || q.Kind == a.Kind) && !other && !outside && q.Arm != bundle.Shared {
			out = append(out, a)
		}
	}
	return out
}

// Open returns what was kept of an artifact, in the form of its kind.
func (f *foreign) Open(a bundle.Artifact) (io.ReadCloser, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	var err error
	switch a.Kind {
	case bundle.Logs:
		for _, l := range f.lines {
			file := l.path
			if l.words > 0 { // a log may have the ends of several processes
				file = fmt.Sprintf("%s:%d", l.path, l.words)
			}
			one := bundle.LogLine{Time: l.at, File: file, Text: l.text, Untimed: l.untimed}
			err = enc.Encode(one)
		}
	case bundle.Journal:
		for _, l := range f.lines {
			at := strconv.FormatInt(l.at.UnixMicro(), 10)
			err = enc.Encode(map[string]string{"__REALTIME_TIMESTAMP": at, "MESSAGE": l.text})
		}
	case bundle.Nodes:
		err = encode(enc, f.nodes)
	case bundle.Statuses:
		err = encode(enc, f.statuses)
	case bundle.MetricSamples:
		err = encode(enc, f.samples[a.Path])
	case bundle.Identity:
		err = enc.Encode(f.process[a.Path])
	case bundle.CPU, bundle.Heap:
		b.Write(f.profiles[a.Path])
	default:
		err = fmt.Errorf("reading %s: %s is not kept", a.Path, a.Kind)
	}
	return io.NopCloser(&b), err
}

func encode[T any](enc *json.Encoder, all []T) error {
	for _, one := range all {
		if err := enc.Encode(one); err != nil {
			return err
		}
	}
	return nil
}

// Remember returns a dump that was kept, and reads anything else anew each time.
func (f *foreign) Remember(
	a bundle.Artifact,
	as string,
	grow func(any, io.Reader) (any, error),
) (any, error) {
	if d := f.dumps[a.Path]; d != nil && as == question.AsDump {
		return d, nil
	}
	r, err := f.Open(a)
	if err != nil {
		return nil, err
	}
	return grow(nil, r)
}

// Phase returns the window of all evidence of the kinds that a check asks for, whatever the phase is called.
func (f *foreign) Phase(string, string) (w bundle.Window, ok bool) {
	for kind, of := range f.windows {
		if slices.Contains(f.asked, kind) {
			w = around(w, of)
		}
	}
	if w.Start.IsZero() {
		w.Start = time.Unix(0, 0).UTC()
		w.End = w.Start.Add(time.Second)
	}
	return w, true
}

// around returns the shortest window that has both a and b in it. A zero window counts as none.
func around(a, b bundle.Window) bundle.Window {
	if a.Start.IsZero() || !b.Start.IsZero() && b.Start.Before(a.Start) {
		a.Start = b.Start
	}
	if b.End.After(a.End) {
		a.End = b.End
	}
	return a
}

// Timeline, Constant and World return nothing, because they describe a trial and this is none.
func (f *foreign) Timeline() []event.Event               { return nil }
func (f *foreign) Constant(string, string) (int64, bool) { return 0, false }
func (f *foreign) World() bundle.World                   { return bundle.World{} }

// stream registers an artifact that covers w, of which skipped lines were filtered out and lost lines could not be
// read.
func (f *foreign) stream(kind bundle.Kind, path string, w bundle.Window, skipped, lost int) {
	f.put(kind, path, w)
	a := &f.artifacts[len(f.artifacts)-1]
	a.Skipped, a.Coverage = skipped, &bundle.Coverage{
		First:      w.Start,
		Last:       w.End,
		Suppressed: lost,
	}
}

// put registers an artifact that was taken from the beginning of w to its end.
func (f *foreign) put(kind bundle.Kind, path string, w bundle.Window) {
	if f.windows == nil {
		f.windows = map[bundle.Kind]bundle.Window{}
	}
	f.windows[kind] = around(f.windows[kind], w)
	f.artifacts = append(f.artifacts, bundle.Artifact{
		Meta: bundle.Meta{Kind: kind, Component: f.component, Time: w.Start}, Path: path})
}

// chosen is a view of some of the artifacts.
type chosen struct {
	bundle.View
	chooses func(bundle.Artifact) bool
}

// Artifacts leaves out what isn't chosen.
func (c chosen) Artifacts(q bundle.Query) []bundle.Artifact {
	return slices.DeleteFunc(
		slices.Clone(c.View.Artifacts(q)),
		func(a bundle.Artifact) bool { return !c.chooses(a) },
	)
}
