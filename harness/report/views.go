package report

import (
	"html/template"
	"net/url"
	"path"
	"slices"
	"strings"
)

// pageView is what the template shows: the view, and its pictures.
type pageView struct {
	view
	Parts []part
}

// Alone reports whether the run is one trial, which needs no heading.
func (p pageView) Alone() bool { return len(p.Parts) == 1 }

// Foremost returns the versions that stand at the top of the page.
func (p pageView) Foremost() map[string]string {
	out := map[string]string{}
	for what, version := range p.Versions {
		name, _, _ := strings.Cut(what, "@")
		if slices.Contains([]string{"engine", "go", "kind", "kubernetes", "relapse"}, name) {
			out[what] = version
		}
	}
	return out
}

// part is a trial with its pictures. Room is false if the page has no room for them.
type part struct {
	trialView
	Lanes    []laneView
	Series   []seriesView
	Profiles []profilesView
	Room     bool
}

// Together reports whether the fault was in force at the same time in all arms.
func (p part) Together() bool { return together(p.Clocks) }

// Overlap reports whether faults of several arms were in force at the same time, on the clocks of their arms.
func (p part) Overlap() bool {
	for i, a := range p.Clocks {
		for _, b := range p.Clocks[i+1:] {
			for _, s := range a.Faults {
				for _, o := range b.Faults {
					if s.From < o.To && o.From < s.To {
						return true
					}
				}
			}
		}
	}
	return false
}

// laneView, seriesView and graphView are pictures with their data.
type laneView struct {
	Lane
	Zero string
	SVG  template.HTML
}

type seriesView struct {
	Figure
	SVG template.HTML
}

// Beside returns the names of the lines that are drawn for context.
func (s seriesView) Beside() []string {
	var out []string
	for _, l := range s.Lines {
		if l.Of != "" {
			out = append(out, l.Label())
		}
	}
	return out
}

type profilesView struct {
	Profiles
	Own  []own
	Name [2]string // of the arms whose functions are compared; the second is "" if there is one arm only
}

// Compare returns the paths of the two profiles that are compared, none if there is one arm only.
func (p profilesView) Compare() []string {
	if len(p.Arms) < 2 {
		return nil
	}
	return []string{p.Arms[0].Artifact.Path, p.Arms[len(p.Arms)-1].Artifact.Path}
}

type evidenceView struct {
	dir   string
	paths []string
}

// mostLinks is how many links a check has in a page; verdict.json has all of them.
const mostLinks = 12

// Links returns the links to the first three files.
func (e evidenceView) Links() []template.URL { return e.some(0, 3) }

// More returns the links to the files after those, up to mostLinks in all.
func (e evidenceView) More() []template.URL { return e.some(3, mostLinks) }

// Left returns how many files have no link.
func (e evidenceView) Left() int { return max(0, len(e.paths)-mostLinks) }

func (e evidenceView) some(from, to int) []template.URL {
	var out []template.URL
	for _, p := range e.paths[min(from, len(e.paths)):min(to, len(e.paths))] {
		out = append(out, template.URL((&url.URL{Path: path.Join(e.dir, p)}).EscapedPath()))
	}
	return out
}
