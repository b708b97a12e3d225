package report

import (
	"html/template"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// pageView is what the template shows.
type pageView struct {
	Verdict
	Parts []part
	Again []string
}

// Alone says that the run is one trial, which needs no heading of its own.
func (p pageView) Alone() bool { return len(p.Parts) == 1 }

// Foremost are the versions that a reader looks for first; all of them stand further down.
func (p pageView) Foremost() map[string]string {
	out := map[string]string{}
	for what, version := range p.Versions {
		if name, _, _ := strings.Cut(what, "@"); slices.Contains([]string{"engine", "go", "kind", "kubernetes", "relapse"}, name) {
			out[what] = version
		}
	}
	return out
}

// Repeated says that rates over trials say something.
func (p pageView) Repeated() bool { return p.repeated() }

// part is a trial with its pictures. Room is false where there was none left for them.
type part struct {
	Trial
	Lanes  []laneView
	Series []seriesView
	Graphs []graphView
	Room   bool
}

// Together says that the fault was in force at the same time in all arms.
func (p part) Together() bool { return together(p.Clocks) }

// laneView and the others are pictures with what they are of.
type laneView struct {
	Lane
	Zero string
	SVG  template.HTML
}

type seriesView struct {
	Figure
	SVG template.HTML
}

// Beside are the names of what is drawn for context.
func (s seriesView) Beside() []string {
	var out []string
	for _, l := range s.Lines {
		if l.Of != "" {
			out = append(out, l.Label())
		}
	}
	return out
}

type graphView struct {
	Flames
	Each []template.HTML
	Diff template.HTML
	Own  []Own
	Name [2]string
}

type evidenceView struct {
	dir   string
	paths []string
}

// mostGroups are the groups of like stacks that a page shows of an arm.
const mostGroups = 6

// digest is the SHA-256 of the binary that an arm's trial was built with, "" if it isn't known.
func (v Verdict) digest(a verdict.Arm) string {
	for _, t := range v.Trials {
		for _, c := range t.World.Cells {
			if t.ID == a.Trial && c.Arm == a.Name {
				return c.Digest
			}
		}
	}
	return ""
}

type listView struct {
	Name     string
	Findings []check.Finding
}

// listViews are an arm's lists of checks under names that say what they are for.
func listViews(a verdict.Arm) []listView {
	return []listView{
		{"Identity: it is the binary that was built, and one process", a.Identity},
		{"Steady state, before any fault", a.Steady},
		{"Baseline: the signature, asked before the fault; must be not met", a.Baseline},
		{"Exposure: the fault took effect, and reached the code in question", a.Exposure},
		{"Signature: the incident's fingerprint", a.Signature},
		{"Healed: it is well", a.Healed},
		{"Information: decides nothing", a.Info},
	}
}

type rowView struct {
	check.Finding
	Dir  string
	Part bool
}

// mostLinks are the links of a check that a page has; verdict.json has all.
const mostLinks = 12

// Links are the files, the first few or the rest.
func (e evidenceView) Links() []template.URL { return e.some(0, 3) }

// More are further ones.
func (e evidenceView) More() []template.URL { return e.some(3, mostLinks) }

// Left is how many there are beyond these.
func (e evidenceView) Left() int { return max(0, len(e.paths)-mostLinks) }

func (e evidenceView) some(from, to int) []template.URL {
	var out []template.URL
	for _, p := range e.paths[min(from, len(e.paths)):min(to, len(e.paths))] {
		out = append(out, template.URL((&url.URL{Path: path.Join(e.dir, p)}).EscapedPath()))
	}
	return out
}

// Happened are the events that a reader wants beside the drawing.
func (p part) Happened() []event.Event {
	return slices.DeleteFunc(slices.Clone(p.Events), func(e event.Event) bool { return !told(e) })
}
