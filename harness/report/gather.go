package report

import (
	"encoding/json"
	"fmt"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Load is what a load did in an arm.
type Load struct {
	Arm string
	bundle.Load
}

// Census says which containers of an arm's node ran, and which were only reported.
type Census struct {
	Arm, Phase string
	bundle.ContainerCensus
}

// gather lists the evidence, with what reports show of it as it is.
func (t *Trial) gather() {
	b := t.Evidence
	for _, a := range b.Artifacts(bundle.Query{}) {
		switch {
		case a.Missing:
			a.Error = "listed in the manifest and not on disk: " + a.Path
			t.Failed = append(t.Failed, a)
		case a.Error != "":
			t.Failed = append(t.Failed, a)
		case a.Coverage != nil:
			t.Streams = append(t.Streams, a)
		case a.Kind == bundle.LoadSummary:
			l := Load{Arm: a.Arm}
			if err := decode(b, a, &l.Load); err != nil {
				a.Error = err.Error()
				t.Failed = append(t.Failed, a)
				continue
			}
			t.Loads = append(t.Loads, l)
		case a.Kind == bundle.Containers && a.Phase == check.Fault:
			if r, err := b.Open(a); err == nil {
				var p bundle.ContainerCensus
				if json.NewDecoder(r).Decode(&p) == nil {
					t.Censuses = append(t.Censuses, Census{a.Arm, a.Phase, p})
				}
				r.Close()
			}
		}
	}
}

// draw reads the values that the pictures of a trial show.
func (t *Trial) draw() {
	b, p := t.Evidence, t.Plan
	e := newEvidence(b, p, t.Arms)
	t.Figures, t.Clocks = figures(e, p)
	for _, k := range t.Clocks {
		t.Stacks = append(t.Stacks, e.stacks(k, p.Subject)...)
	}
	t.Profiles = readProfiles(b, t.Clocks, p.Subject)
	for _, c := range p.Arms {
		t.Lanes = append(t.Lanes, laneOf(b, c, t.Loads))
	}
}

func decode(b bundle.View, a bundle.Artifact, into any) error {
	r, err := b.Open(a)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := json.NewDecoder(r).Decode(into); err != nil {
		return fmt.Errorf("reading %s: %w", a.Path, err)
	}
	return nil
}
