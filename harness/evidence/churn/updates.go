package churn

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
)

// Updates yields the versions of a record, including marks, each together with the same object's version before it. It
// yields the errors of Read. It also yields an error for an object that isn't JSON where it differs from the version
// before.
func Updates(r io.Reader) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		t := tracker{
			objects: map[string]*object{},
			classes: map[string]*class{},
			words:   map[string]string{},
		}
		n := 0
		for v, err := range Read(r) {
			if err != nil {
				if !yield(Update{}, err) {
					return
				}
				continue
			}
			n++
			u, o, err := t.next(v)
			if err != nil {
				u, err = Update{}, fmt.Errorf(
					"version %d, %s of %s/%s: %w",
					n,
					v.Resource,
					v.Namespace,
					v.Name,
					err,
				)
			}
			if !yield(u, err) {
				return
			}
			if o != nil {
				o.last = append(o.last[:0], v.Object...)
			}
		}
	}
}

// object is what is known of one object.
type object struct {
	resource, namespace, uid string
	last                     []byte
	layout                   layout // of last
	listed                   bool   // the object was listed since the last Synced mark of its resource
}

type class struct {
	text  string
	paths []string
}

// tracker keeps the last version of every object, to compare the next one with.
type tracker struct {
	differ
	key     []byte
	objects map[string]*object
	classes map[string]*class
	words   map[string]string
	order   [][]byte
	joined  []byte
}

// next returns the update of a version. The returned object keeps the version's bytes once the update was looked at; it
// is nil for a mark.
func (t *tracker) next(v Version) (Update, *object, error) {
	u := Update{Version: v}
	switch v.Type {
	case Synced:
		t.synced(v)
		return u, nil, nil
	case Lost:
		return u, nil, nil
	}
	t.key = append(append(append(append(append(t.key[:0], v.Resource...), 0), v.Namespace...), 0), v.Name...)
	o := t.objects[string(t.key)]
	if o == nil {
		o = &object{resource: v.Resource, namespace: v.Namespace, uid: v.UID}
		t.objects[string(t.key)] = o
	}
	if o.uid == v.UID && len(o.last) > 0 {
		u.Before = o.last
	}
	o.uid, o.listed = v.UID, o.listed || v.Type == Listed
	if v.Type == Deleted {
		delete(t.objects, string(t.key))
	}
	if u.Before != nil && t.follow(&o.layout, u.Before, v.Object, &u) {
		return u, o, nil
	}
	o.layout.size = -1
	t.found, t.stamped, t.touched = t.found[:0], t.stamped[:0], t.touched[:0]
	if u.Before != nil {
		if err := t.compare(u.Before, v.Object); err != nil {
			return u, o, err
		}
		c := t.class()
		u.Class, u.Paths = c.text, c.paths
		t.learn(&o.layout, v.Object)
	}
	manager, subresource := t.writer(v.Object)
	u.Manager, u.Subresource = t.word(manager), t.word(subresource)
	return u, o, nil
}

// synced forgets the objects that the last list no longer had.
func (t *tracker) synced(v Version) {
	for key, o := range t.objects {
		if o.resource != v.Resource || v.Namespace != "" && o.namespace != v.Namespace {
			continue
		}
		if !o.listed {
			delete(t.objects, key)
		}
		o.listed = false
	}
}

// class returns the class of the changes that were found, the same value each time for the same changes.
func (t *tracker) class() *class {
	t.order = t.order[:0]
	for _, f := range t.found {
		t.order = append(t.order, t.text[f.from:f.to])
	}
	slices.SortFunc(t.order, bytes.Compare)
	t.joined = t.joined[:0]
	for i, p := range t.order {
		if i > 0 {
			t.joined = append(t.joined, ", "...)
		}
		t.joined = append(t.joined, p...)
	}
	if c := t.classes[string(t.joined)]; c != nil {
		return c
	}
	c := &class{text: string(t.joined)}
	for _, p := range t.order {
		c.paths = append(c.paths, strings.Clone(string(p)))
	}
	if len(t.classes) < 1<<16 { // a limit, for a record in which every write changes something new
		t.classes[c.text] = c
	}
	return c
}

func (t *tracker) word(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	p := parser{words: t.words}
	return p.word(b)
}
