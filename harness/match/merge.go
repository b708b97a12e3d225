package match

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// merged makes one subject from all sources in one place.
func merged(component, place string, all []*source) *subject {
	v := &foreign{
		component: component,
		dumps:     map[string]*goroutine.Dump{},
		clocks:    map[string]string{},
		heads:     map[string]map[uint64]int{},
		parts:     map[string]string{},
		profiles:  map[string][]byte{},
		samples:   map[string][]bundle.MetricSample{},
		process:   map[string]bundle.IdentitySample{},
	}
	if len(all) == 1 {
		place = all[0].path
	}
	sub := &subject{component: component, place: place, arm: here, view: v}
	starts, silent := true, false
	for _, s := range all {
		for _, v := range s.versions {
			sub.versions, sub.unsure = union(
				sub.versions,
				v.version,
			), cmp.Or(
				sub.unsure,
				v.unsure,
			)
			starts = starts && v.start
		}
		silent, sub.teaches = silent || len(s.versions) == 0, sub.teaches || s.teaches
		if sub.owner.program == "" {
			sub.owner = s.owner
		}
		for _, d := range s.dumps {
			if !d.Format.HasStates() {
				one := counted{fmt.Sprintf("%s:%d", s.path, d.Line), d.Dump}
				at := d.at
				if at.IsZero() {
					at = time.Unix(0, 0).UTC()
				}
				sub.counted, v.dumps[one.where] = append(sub.counted, one), d.Dump
				v.put(
					bundle.Goroutines1,
					one.where,
					bundle.Window{Start: at, End: at.Add(time.Second)},
				)
			}
		}
		for _, p := range s.profiles {
			v.profiles[p.path], v.parts[p.path] = p.raw, p.part
			if !p.at.End.After(p.at.Start) { // of one moment, or its length isn't known
				p.at.End = p.at.Start.Add(time.Second)
			}
			v.put(p.kind, p.path, p.at)
		}
	}
	if starts && silent && len(sub.versions) > 0 {
		sub.unsure = cmp.Or(sub.unsure, "as not all files say")
	}
	v.logs(all, place)
	v.metrics(all)
	v.stacks(all)
	sub.lines = v.lines
	return sub
}

// logs merges the lines that were kept of all sources.
func (f *foreign) logs(all []*source, place string) {
	var w bundle.Window
	lines, lost := 0, 0
	at := place
	for _, s := range all {
		if s.lines > 0 || len(s.kept) > 0 {
			lines, lost, f.lines = lines+s.lines, lost+s.lost, append(f.lines, s.kept...)
			w = around(
				w,
				bundle.Window{Start: s.first.Add(-time.Second), End: s.last.Add(time.Second)},
			)
		}
	}
	if w.Start.IsZero() {
		return
	}
	slices.SortStableFunc(f.lines, func(a, b line) int { return a.at.Compare(b.at) })
	f.passed = lines - len(f.lines)
	f.lines = withoutCopies(f.lines)
	f.stream(bundle.Logs, at, w, f.passed, lost)
	f.stream(bundle.Journal, at, w, f.passed, lost)
}

// withoutCopies leaves out each line that another file has, too, with the same text and the same
// fraction of a second: a log may be there as a file, within an archive and in a text. What a
// process printed as it ended stays as each file has it.
func withoutCopies(all []line) []line {
	type written struct {
		at   time.Time
		text string
	}
	first := map[written]string{} // the file that a line was first found in
	return slices.DeleteFunc(all, func(l line) bool {
		key := written{l.at, l.text}
		had, ok := first[key]
		if !ok {
			first[key] = l.path
		}
		return ok && had != l.path && !l.untimed && l.words == 0 && l.at.Nanosecond() != 0
	})
}

// metrics merges the samples of all sources. The samples of one file were taken at the same time.
func (f *foreign) metrics(all []*source) {
	for _, s := range all {
		if len(s.samples) == 0 {
			continue
		}
		f.samples[s.path] = s.samples
		at := s.samples[0].Time
		w := bundle.Window{Start: at.Add(-time.Second), End: at.Add(time.Second)}
		f.stream(bundle.MetricSamples, s.path, w, 0, 0)
		if s.process.PID > 0 {
			f.process[s.path] = s.process
			f.stream(bundle.Identity, s.path, w, 0, 0)
		}
	}
}

// stacks registers the dumps that tell states, in the order in which they were taken. A copy is no second dump.
func (f *foreign) stacks(all []*source) {
	type one struct {
		dumped
		path string
	}
	var dumps []one
	counted := 0
	for _, s := range all {
		for _, d := range s.dumps {
			copied := slices.ContainsFunc(dumps, func(o one) bool { return o.copies(d) })
			if d.Format.HasStates() && !copied {
				dumps = append(dumps, one{d, fmt.Sprintf("%s:%d", s.path, d.Line)})
			} else {
				counted = max(counted, d.Total)
			}
		}
	}
	slices.SortStableFunc(
		dumps,
		func(a, b one) int { return cmp.Or(a.at.Compare(b.at), newer(a.Dump, b.Dump)) },
	)
	for _, d := range dumps {
		if d.at.IsZero() {
			d.at = time.Unix(0, 0).UTC()
		}
		if why := d.beside(counted); why != "" {
			part := *d.Dump
			part.Truncated = true
			d.Found, d.part = &goroutine.Found{Dump: &part, Line: d.Line}, why
		}
		f.dumps[d.path], f.clocks[d.path], f.parts[d.path], f.heads[d.path] = d.Dump, d.clock, d.part, d.heads
		f.put(bundle.Goroutines2, d.path, bundle.Window{Start: d.at, End: d.at.Add(time.Second)})
	}
}

// subject returns the subject that an object is evidence of.
func (o object) subject() *subject {
	v := &foreign{component: o.component, nodes: o.nodes, statuses: o.statuses}
	for _, n := range o.nodes {
		w := bundle.Window{Start: n.Time.Add(-10 * time.Second), End: n.Time.Add(time.Second)}
		v.stream(bundle.Nodes, o.path, w, 0, 0)
	}
	for _, s := range o.statuses {
		w := bundle.Window{Start: s.LastFinished.Add(-time.Second), End: s.Time.Add(time.Second)}
		v.stream(bundle.Statuses, o.path, w, 0, 0)
	}
	sub := &subject{
		component: o.component,
		owner:     owner{o.component, "the name of its container"},
		place:     o.place,
		arm:       here,
		view:      v,
	}
	if len(o.nodes) > 0 {
		sub.owner.by = "what its node says"
	}
	sub.versions = union(nil, o.version)
	return sub
}

// moduleFile returns a pattern for the version of a module in the path of one of its files:
// .../dynamiclistener@v0.3.3/listener.go. The first group is what stands before the module.
func moduleFile(module string) *regexp.Regexp {
	return regexp.MustCompile(
		`^(.*/)?` + regexp.QuoteMeta(module) + `@(v[0-9]+\.[0-9]+\.[0-9]+[-+.\w]*)/`,
	)
}

// asRequired is why the version in a path may not be that of the files.
const asRequired = "as its go.mod requires it, which may have replaced it by another"

// moduleVersions returns the versions of a module whose files the stacks name. The paths of a vendored module have
// none. unsure says why these may not be its own, "" if they are: a build with -trimpath names files after the version
// that go.mod requires, also where a replace gave the module another one. A path that begins elsewhere is that of the
// folder in which the files lay.
func (sub *subject) moduleVersions(module string) (out []string, unsure string) {
	re := moduleFile(module)
	for _, a := range sub.view.Artifacts(bundle.Query{Kind: bundle.Goroutines2, Arm: sub.arm}) {
		d := dumpOf(sub.view, a)
		if d == nil {
			continue
		}
		for _, g := range d.Groups {
			for _, f := range append(slices.Clip(g.Frames), g.CreatedAt) {
				m := re.FindStringSubmatch(f.File)
				if m == nil {
					continue
				}
				if out = union(out, m[2]); m[1] == "" {
					unsure = asRequired
				}
			}
		}
	}
	return out, unsure
}
