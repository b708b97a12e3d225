package match

import (
	"slices"
	"sort"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// here is the arm of evidence that belongs to no trial. Messages use the name where something is missing.
const here = "this evidence"

// subjects returns the evidence of a component by its place: a folder, a node, a pod, an arm of a trial. Evidence that
// isn't known to be the component's gets subjects without a component.
func (e *evidence) subjects(component string, packages []string) (out []*subject) {
	e.versions[component] = nil
	for _, t := range e.trials {
		if t.component == component {
			out = append(out, t)
		}
	}
	for _, o := range e.objects {
		if o.component == component {
			out = append(out, o.subject())
			e.versions[component] = union(e.versions[component], o.version)
		}
	}
	type at struct {
		component, place, other string
	}
	var order []at
	byPlace := map[at][]*source{}
	for _, s := range e.sources {
		for _, part := range s.parts(component, packages) {
			key := at{part.component, s.folder, ""}
			if part.component == "" {
				key.place, key.other = s.path, part.source.owner.program
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
		if key.component != "" && sub.unsure == "" {
			e.versions[component] = union(e.versions[component], sub.versions...)
		}
	}
	return out
}

// part is the share that one component has of a source. The component is "" if it isn't known whether the share is its.
type part struct {
	component string
	source    *source
}

// parts splits a source into the component's share, the share of no known program, and what other programs left.
func (s *source) parts(component string, packages []string) (out []part) {
	mine, nobodys := *s, *s
	mine.dumps, nobodys.dumps = nil, nil
	who, byPath := s.belongs(component, packages)
	mine.owner, nobodys.owner = who, s.likely(component)
	mine.versions, nobodys.versions = s.versionsOf(component), s.versionsOf(component)
	var others []owner
	left := map[string][]dumped{}
	for _, d := range s.dumps {
		switch who := s.whose(d, component, packages); {
		case who.program == component || who.program == "" && byPath:
			mine.dumps = append(mine.dumps, d)
			if !byPath {
				mine.owner = who
			}
		case who.program == "" || s.madeBy(d.section).of == "" && mayHost(d.Dump, who, component):
			nobodys.dumps = append(nobodys.dumps, d)
		default:
			if left[who.program] == nil {
				others = append(others, who)
			}
			left[who.program] = append(left[who.program], d)
		}
	}
	if len(s.profiles) > 0 {
		who := s.profiledProgram(component, packages)
		// Where a file lies doesn't show whose profile it is: dumps beside it may be another process's.
		if who.program != component {
			mine.profiles = nil
		} else if !byPath {
			mine.owner = who
		}
		if who.program != "" {
			nobodys.profiles = nil
		}
	}
	for _, l := range s.kept {
		if m := s.madeBy(l.section); m.of != "" && left[m.of] == nil {
			others, left[m.of] = append(others, m.owner()), []dumped{}
		}
	}
	for _, other := range others {
		out = append(out, part{"", s.anothers(other, left[other.program])})
	}
	kept := slices.DeleteFunc(slices.Clone(s.kept), func(l line) bool {
		return s.madeBy(l.section).of != "" || slices.ContainsFunc(
			others,
			func(o owner) bool { return s.printed(l, left[o.program]) },
		)
	})
	mine.kept, nobodys.kept = kept, kept
	mine.lines -= len(s.kept) - len(kept)
	nobodys.lines = mine.lines
	if slices.ContainsFunc(kept, func(l line) bool { return l.from != "" }) {
		mine.kept = slices.DeleteFunc(
			slices.Clone(kept),
			func(l line) bool { return l.from != "" && l.from != component },
		)
		mine.lines -= len(kept) - len(mine.kept)
	}
	if slices.ContainsFunc(s.from, isHost) { // what other programs have logged beside it is not its
		nobodys.kept = slices.DeleteFunc(slices.Clone(kept), func(l line) bool { return l.from != "" && l.from != component && !isHost(l.from) })
	}
	isLog := byPath && s.log > 0
	if !isLog { // the last words above its own dumps are its nevertheless
		own := func(l line) bool {
			return (l.from == "" || l.from == component) && s.printed(l, mine.dumps)
		}
		mine.kept = slices.DeleteFunc(
			slices.Clone(mine.kept),
			func(l line) bool { return !own(l) },
		)
		nobodys.kept = slices.DeleteFunc(slices.Clone(nobodys.kept), own)
		mine.lines, nobodys.lines = len(mine.kept), nobodys.lines-len(mine.kept)
	}
	if byPath {
		nobodys.samples = nil
	} else {
		mine.samples = nil
	}
	if isLog || len(mine.dumps)+len(mine.profiles)+len(mine.samples) > 0 || byPath && len(mine.versions) > 0 {
		out = append(out, part{component, &mine})
	}
	if isLog {
		nobodys.kept = nil
	}
	if len(nobodys.dumps)+len(nobodys.kept)+len(nobodys.profiles)+len(nobodys.samples) > 0 {
		out = append(out, part{"", &nobodys})
	}
	return out
}

// anothers returns what another program left in a source: its dumps, the last words above them, and what else it is known
// to have printed.
func (s *source) anothers(who owner, dumps []dumped) *source {
	out := &source{path: s.path, folder: s.folder, owner: who, dumps: dumps, teaches: s.teaches, took: s.took, ref: s.ref, first: s.first, last: s.last}
	for _, l := range s.kept {
		if s.printed(l, dumps) || s.madeBy(l.section).of == who.program {
			out.kept = append(out.kept, l)
		}
	}
	out.lines = len(out.kept)
	return out
}

// printed reports whether a line is among the last words above one of these dumps.
func (s *source) printed(l line, dumps []dumped) bool {
	below := s.below(l.words)
	return below != nil && slices.ContainsFunc(dumps, func(d dumped) bool { return d.Found == below })
}

// below returns the dump that a process has printed below the last words that begin in a line; nil if it has
// printed none, or if there are no such words.
func (s *source) below(words int) *goroutine.Found {
	i := sort.Search(len(s.dumps), func(i int) bool { return s.dumps[i].Line > words })
	if words == 0 || i == len(s.dumps) || s.dumps[i].Line-words >= dying {
		return nil
	}
	return s.dumps[i].Found
}

// ended reports whether a process has printed a dump as it ended: there are last words above it.
func (s *source) ended(d dumped) bool {
	if s.ends == nil {
		s.ends = map[*goroutine.Found]bool{}
		for _, l := range s.kept {
			if below := s.below(l.words); below != nil {
				s.ends[below] = true
			}
		}
	}
	return s.ends[d.Found]
}
