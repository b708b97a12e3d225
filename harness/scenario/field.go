package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// FieldError is a mistake in a field of a scenario that shows only once the scenario is planned or its sources are read.
// Path leads to the field from spec, as a setting names it: members of lists go by their names, or by their indexes if
// they have none.
type FieldError struct {
	Path []string
	Err  error
}

// Error returns the mistake without its place. Locate adds the place.
func (e *FieldError) Error() string { return e.Err.Error() }

// Unwrap returns the mistake.
func (e *FieldError) Unwrap() error { return e.Err }

// InField says that err is a mistake in the field at path. It returns nil if err is nil, and err itself if that already
// names a field.
func InField(err error, path ...string) error {
	var field *FieldError
	if err == nil || errors.As(err, &field) {
		return err
	}
	return &FieldError{Path: path, Err: err}
}

// Within says during what err happened, unless it is nil. Locate leaves that out for errors that it can place.
func Within(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// Locate returns the field errors in err as Violations, with their places in the scenario's file, each mistake once. If
// err has other errors, too, those come after the violations. If the scenario has no text, or was changed in memory, err
// is returned as it is.
func (s *Scenario) Locate(err error) error {
	fields, others := parts(err)
	if len(fields) == 0 || s.Origin == nil || s.Origin.text == "" {
		return err
	}
	if encoded, e := json.Marshal(s); e != nil || !bytes.Equal(encoded, s.Origin.encoded) {
		return err
	}
	d := read(s.Origin.File, "scenario", []byte(s.Origin.text))
	d.beside = s.Origin.beside
	d.expand()
	d.found = nil // complaints about the text itself came when it was read
	var all []mistake
	for _, f := range fields {
		all = append(all, mistake{d.find(f.Path), f.Error()})
	}
	for i, f := range fields {
		if d.repeats(all[i], all) {
			continue
		}
		if s.Origin.sets(f.Path) { // the file has another value there
			d.found = append(d.found, Violation{File: s.Metadata.Name + " with settings",
				Path: strings.Join(append([]string{"spec"}, f.Path...), "."), Message: f.Error()})
			continue
		}
		d.place(f)
	}
	return errors.Join(append([]error{d.found.sorted()}, others...)...)
}

// Locate returns the field errors in err as Violations, with their places in the candidate's file, each mistake once. If
// err has other errors, too, those come after the violations.
func (k *CandidateFile) Locate(err error) error {
	fields, others := parts(err)
	text, failed := os.ReadFile(k.File)
	if len(fields) == 0 || failed != nil {
		return err
	}
	d := read(k.File, "candidate", text)
	d.expandCandidate()
	d.found = nil // as above
	for _, f := range fields {
		d.place(f)
	}
	return errors.Join(append([]error{d.found.sorted()}, others...)...)
}

// place adds a field error as a violation.
func (d *document) place(f *FieldError) {
	at := d.find(f.Path)
	d.add(
		d.positionOf(at),
		d.written(at),
		"%s",
		strings.ReplaceAll(strings.TrimSpace(f.Error()), "\n", "; "),
	)
}

// parts separates the field errors in err from all other errors.
func parts(err error) (fields []*FieldError, others []error) {
	var any *FieldError
	switch e := err.(type) {
	case nil:
		return nil, nil
	case *FieldError:
		return []*FieldError{e}, nil
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			f, o := parts(one)
			fields, others = append(fields, f...), append(others, o...)
		}
		return fields, others
	}
	if !errors.As(err, &any) {
		return nil, []error{err}
	}
	inner := errors.Unwrap(err)
	fields, others = parts(inner) // what is wrapped around a field error says no more than its place
	if around, ok := strings.CutSuffix(err.Error(), inner.Error()); ok && len(others) > 0 {
		others = []error{fmt.Errorf("%s%w", around, errors.Join(others...))}
	}
	return fields, others
}

// sets reports whether settings changed the field at path, a part of it or what it is a part of.
func (o *Origin) sets(path []string) bool {
	field := strings.Join(path, ".") + "."
	for _, layer := range o.settings {
		for name := range layer {
			if strings.HasPrefix(field, name+".") || strings.HasPrefix(name+".", field) {
				return true
			}
		}
	}
	return false
}

// find returns the path in the document to which a path of names leads. Where the document doesn't go on as the path
// does, the rest is left out: the file leaves a default open, say.
func (d *document) find(names []string) []string {
	at := []string{"spec"}
	for _, name := range names {
		switch v := lookup(d.value, at).(type) {
		case map[string]any:
			if _, ok := v[name]; !ok {
				return at
			}
			at = append(slices.Clip(at), name)
		case []any:
			i, _ := member(v, name)
			if i < 0 {
				return at
			}
			at = append(slices.Clip(at), strconv.Itoa(i))
		default:
			return at
		}
	}
	return at
}

// OneOf lists the known names in parentheses, and says which of them name probably meant.
func OneOf(name string, known []string) string { return oneOf(name, known) }

// Nearest returns the known name that a misspelt one most likely means, "" if none is close.
func Nearest(name string, known []string) string { return nearest(name, known) }

// Meant returns "; did you mean X?" for the known name that a misspelt one most likely means, "" if none is close.
func Meant(name string, known []string) string {
	if n := nearest(name, known); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}
