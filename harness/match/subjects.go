package match

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

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
		if o.component == component {
			out = append(out, o.subject())
			e.versions[component] = union(e.versions[component], o.version)
		}
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

// parts are what a source has of a component, and what it has of nobody that is known.
func (s *source) parts(component string, packages []string) (out []part) {
	mine, nobodys := *s, *s
	mine.dumps, nobodys.dumps = nil, nil
	byPath := slices.Contains(s.named, component) || slices.Contains(s.from, component) || s.all(component, packages)
	for _, d := range s.dumps {
		switch who := process(d.Dump, component, packages); {
		case who == component || who == "" && byPath:
			mine.dumps = append(mine.dumps, d)
		case who == "":
			nobodys.dumps = append(nobodys.dumps, d)
		}
	}
	if len(s.profiles) > 0 {
		who := process(s.of, component, packages)
		if who != component && !(who == "" && byPath) {
			mine.profiles = nil
		}
		if who != "" || byPath {
			nobodys.profiles = nil
		}
	}
	if slices.ContainsFunc(s.kept, func(l line) bool { return l.from != "" }) {
		mine.kept = slices.DeleteFunc(slices.Clone(s.kept), func(l line) bool { return l.from != "" && l.from != component })
	}
	isLog := byPath && s.log > 0
	if !isLog {
		mine.kept, mine.lines = nil, 0
	}
	if byPath {
		nobodys.samples = nil
	} else {
		mine.samples = nil
	}
	if isLog || len(mine.dumps)+len(mine.profiles)+len(mine.samples) > 0 || byPath && len(s.versions) > 0 {
		out = append(out, part{component, &mine})
	}
	if isLog {
		nobodys.kept = nil
	}
	if len(nobodys.dumps)+len(nobodys.kept)+len(nobodys.profiles)+len(nobodys.samples) > 0 {
		nobodys.versions = nil
		out = append(out, part{"", &nobodys})
	}
	return out
}

// all reports whether a log is a component's, whatever its file is called: its lines name no writer, and it is the
// component that left the dumps in it.
func (s *source) all(component string, packages []string) bool {
	return len(s.from) == 0 && len(s.dumps) > 0 && !slices.ContainsFunc(s.dumps, func(d dumped) bool {
		return process(d.Dump, component, packages) != component
	})
}

// command is the program's own package, which the main goroutine has on its stack.
var command = regexp.MustCompile(`/cmd/([a-z0-9-]+)(\.|/)`)

// mains are packages on the main goroutine's stack of programs that have none of their own there.
var mains = map[string]string{"go.etcd.io/etcd/server/v3/etcdmain.": "etcd", "k8s.io/cloud-provider/app.": "cloud-controller-manager"}

// process is the component whose dump it is, "" if that can't be told.
func process(d *goroutine.Dump, component string, packages []string) (who string) {
	other := "" // only where nothing names the program itself
	for _, g := range d.Groups {
		for _, f := range g.Frames {
			if slices.ContainsFunc(packages, func(p string) bool { return strings.HasPrefix(f.Func, p) }) {
				return component
			}
			if m := command.FindStringSubmatch(f.Func); m != nil && who != component { // one program may be several
				who = m[1]
			}
			for prefix, name := range mains {
				if strings.HasPrefix(f.Func, prefix) {
					other = name
				}
			}
		}
	}
	return cmp.Or(who, other)
}
