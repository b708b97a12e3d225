package match

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// here is the cell of what belongs to no trial, as it is called where something is missing.
const here = "this evidence"

// subjects is the evidence of a component, by places: folders, nodes, pods, cells of trials. Evidence of nobody that is
// known stands in places of its own, without a component.
func (e *evidence) subjects(component string, packages []string) (out []*subject) {
	e.versions[component] = nil
	for _, t := range e.trials {
		if t.component == component {
			out = append(out, t)
		}
	}
	for _, o := range e.objects {
		if o.component != component {
			continue
		}
		v := &foreign{component: component, nodes: o.nodes}
		if len(o.nodes) > 0 {
			at := o.nodes[0].Time
			v.window = bundle.Window{Start: at.Add(-10 * time.Second), End: at.Add(time.Second)}
			v.add(bundle.Nodes, o.path, 0, 0)
		}
		out = append(out, &subject{component: component, place: o.place, version: o.version, cell: here, view: v})
		e.versions[component] = union(e.versions[component], o.version)
	}
	type at struct {
		component, place string
	}
	var order []at
	byPlace := map[at][]*source{}
	for _, s := range e.sources {
		for _, part := range s.parts(component, packages) {
			key := at{part.component, s.folder}
			if part.component == "" {
				key.place = s.path
			}
			if byPlace[key] == nil {
				order = append(order, key)
			}
			byPlace[key] = append(byPlace[key], part.source)
		}
	}
	for _, key := range order {
		sub := merged(key.component, key.place, byPlace[key])
		out = append(out, sub)
		if key.component != "" {
			e.versions[component] = union(e.versions[component], sub.version)
		}
	}
	return out
}

// part is the share of a source that one component has; the component is "" where nobody knows whose it is.
type part struct {
	component string
	source    *source
}

// parts are a source's dumps and lines of a component, and those of nobody that is known.
func (s *source) parts(component string, packages []string) (out []part) {
	mine, nobodys := *s, *s
	mine.dumps, nobodys.dumps = nil, nil
	byPath := slices.Contains(s.named, component) || slices.Contains(s.from, component)
	for _, d := range s.dumps {
		switch who := process(d.Dump, component, packages); {
		case who == component || who == "" && byPath:
			mine.dumps = append(mine.dumps, d)
		case who == "":
			nobodys.dumps = append(nobodys.dumps, d)
		}
	}
	if slices.ContainsFunc(s.kept, func(l line) bool { return l.from != "" }) {
		mine.kept = slices.DeleteFunc(slices.Clone(s.kept), func(l line) bool { return l.from != "" && l.from != component })
	}
	isLog := byPath && s.log > 0
	if !isLog {
		mine.kept, mine.lines = nil, 0
	}
	if isLog || len(mine.dumps) > 0 || byPath && len(s.versions) > 0 {
		out = append(out, part{component, &mine})
	}
	if isLog {
		nobodys.kept = nil
	}
	if len(nobodys.dumps)+len(nobodys.kept) > 0 {
		nobodys.versions = nil
		out = append(out, part{"", &nobodys})
	}
	return out
}

// command is the program's own package, which the main goroutine has on its stack.
var command = regexp.MustCompile(`/cmd/([a-z0-9-]+)(\.|/)`)

// process is the component whose dump it is, "" if that can't be told.
func process(d *goroutine.Dump, component string, packages []string) (who string) {
	for _, g := range d.Groups {
		for _, f := range g.Frames {
			if slices.ContainsFunc(packages, func(p string) bool { return strings.HasPrefix(f.Func, p) }) {
				return component
			}
			if m := command.FindStringSubmatch(f.Func); m != nil && who != component { // one program may be several
				who = m[1]
			}
		}
	}
	return who
}

// merged makes one subject of sources in one place.
func merged(component, place string, all []*source) *subject {
	v := &foreign{component: component, dumps: map[string]*goroutine.Dump{}}
	if len(all) == 1 {
		place = all[0].path
	}
	sub := &subject{component: component, place: place, cell: here, view: v}
	lines, lost, text := 0, 0, 0
	var versions []string
	for _, s := range all {
		versions = union(versions, s.versions...)
		lines, lost, v.lines = lines+s.lines, lost+s.lost, append(v.lines, s.kept...)
		if s.lines > 0 || len(s.kept) > 0 {
			text++
			if v.window.Start.IsZero() || s.first.Before(v.window.Start) {
				v.window.Start = s.first
			}
			if s.last.After(v.window.End) {
				v.window.End = s.last
			}
		}
	}
	if text == 0 {
		v.window.Start = time.Unix(1, 0).UTC()
		v.window.End = v.window.Start
	}
	v.window.Start, v.window.End = v.window.Start.Add(-time.Second), v.window.End.Add(time.Second)
	slices.SortStableFunc(v.lines, func(a, b line) int { return a.at.Compare(b.at) })
	if len(versions) == 1 {
		sub.version = versions[0]
	}
	sub.lines = v.lines
	if text > 0 {
		at := all[0].path
		if len(all) > 1 {
			at = place
		}
		v.add(bundle.Logs, at, lines-len(v.lines), lost)
		v.add(bundle.Journal, at, lines-len(v.lines), lost)
	}
	for _, s := range all {
		for _, d := range s.dumps {
			if d.Format.HasStates() {
				at := fmt.Sprintf("%s:%d", s.path, d.Line)
				v.dumps[at] = d.Dump
				v.add(bundle.Goroutines2, at, 0, 0)
			}
		}
	}
	return sub
}
