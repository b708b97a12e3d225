package scenario

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// What the tag derives:"…" of a spec's field says that the field is if a scenario leaves it out: the subject's name, or
// the path at which it answers that it is well.
const (
	derivesSubject = "subject"
	derivesReady   = "ready"
)

// specFieldsOf calls do for each field of a spec's type that a file may have, with its name there.
func specFieldsOf(t reflect.Type, do func(name string, f reflect.StructField)) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "" && name != "-" {
			do(name, f)
		}
	}
}

// complete fills in what a spec leaves out that is said of the subject, or that follows from what it says.
func (e *expansion) complete(category, kind string, item map[string]any, path []string) {
	entry, ok := kinds.Lookup(category, kind)
	spec, given := item["spec"].(map[string]any)
	if !ok || !given && item["spec"] != nil {
		return
	}
	if !given {
		spec = map[string]any{}
	}
	blank := entry.New()
	e.fill(reflect.TypeOf(blank), spec, steps(path, "spec"))
	if i, ok := blank.(kinds.Implier); ok {
		for field, v := range i.Implied(spec) {
			e.follow(spec, steps(path, "spec"), field, v)
		}
	}
	if !given && len(spec) > 0 {
		e.put(item, path, "spec", spec, nil)
	}
}

// fill fills in what a spec of type t, or a mapping below it, leaves out that is said of the subject.
func (e *expansion) fill(t reflect.Type, spec map[string]any, path []string) {
	specFieldsOf(t, func(name string, f reflect.StructField) {
		v, given := spec[name]
		below, nested := v.(map[string]any)
		switch from := f.Tag.Get("derives"); {
		case nested:
			e.fill(f.Type, below, steps(path, name))
		case given:
		case from == derivesSubject && e.misnamed():
			e.put(spec, path, name, e.spec["subject"], nil)
			e.d.lost = append(e.d.lost, steps(path, name))
		case from == derivesSubject && e.spec["subject"] != nil:
			e.put(spec, path, name, e.spec["subject"], nil)
		case from == derivesReady && e.ready() != "":
			e.put(spec, path, name, e.ready(), nil)
		}
	})
}

// derivedText says in words what a field with the tag is.
var derivedText = map[string]string{
	derivesSubject: "the subject",
	derivesReady:   "where the subject says that it is ready",
}

// withoutDerived makes fields of a spec of type t optional that are derived.
func withoutDerived(s *jsonschema.Schema, t reflect.Type) {
	specFieldsOf(t, func(name string, f reflect.StructField) {
		p := s.Properties[name]
		if text := derivedText[f.Tag.Get("derives")]; text != "" && p != nil {
			s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == name })
			p.Description += ". Default: " + text
			p.Default = nil
		}
		if p != nil && p.Properties != nil {
			withoutDerived(p, f.Type)
		}
	})
}

// onlyFields caches what onlyField returns.
var onlyFields sync.Map

// onlyField returns the field of a kind's spec that may stand for the whole spec: the only one that a spec can't do
// without. It returns "" if there is none.
func onlyField(category, kind string) string {
	if name, ok := onlyFields.Load(category + "." + kind); ok {
		return name.(string)
	}
	name := ""
	if entry, ok := kinds.Lookup(category, kind); ok {
		if s, err := SpecSchema(entry); err == nil {
			name = OnlyField(s)
		}
	}
	onlyFields.Store(category+"."+kind, name)
	return name
}

// OnlyField returns the field that may stand for all of a spec with this schema, "" if there is none.
func OnlyField(s *jsonschema.Schema) string {
	if len(s.Required) == 1 {
		return s.Required[0]
	}
	return ""
}

// probePhase makes a check of a probe be about the probe's phase, unless it is an alternative in a group of a phase.
func (e *expansion) probePhase(c checkForm) {
	kind, _ := c.item["kind"].(string)
	entry, ok := kinds.Lookup(kinds.Check, kind)
	if !ok || c.phase != "" || c.listPhase == "" {
		return
	}
	specFieldsOf(reflect.TypeOf(entry.New()), func(name string, f reflect.StructField) {
		if f.Tag.Get("refers") != kinds.ToProbe {
			return
		}
		for i, load := range e.list("loads") {
			if lookup(load, []string{"name"}) != lookup(c.item, []string{"spec", name}) || lookup(load, []string{"name"}) == nil {
				continue
			}
			in, given := lookup(e.spec, []string{"loads", strconv.Itoa(i), "phase"}).(string)
			if !given {
				in = "fault"
			}
			if in != c.listPhase {
				e.follow(c.item, c.path, "phase", in)
				e.takes(steps(c.path, "phase"), []string{"spec", "loads", strconv.Itoa(i), "phase"})
			}
			return
		}
	})
}
