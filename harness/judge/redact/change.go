package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/version"
)

// change is how one bundle is redacted. It implements bundle.Change.
type change struct {
	*Table
	opened map[string]bool // the paths of the artifacts that judging opened
	lines  map[bundle.Kind]*wanted
	plan   string // SHA-256 of the run's redacted plan
	from   string // SHA-256 of the original's manifest
	out    *Result
}

// Keep drops what judging didn't open. A capture that failed and a file that is gone are answers in themselves.
func (c *change) Keep(a bundle.Artifact) bool {
	keep := a.Path == "" || a.Missing || c.opened[a.Path]
	if !keep {
		c.out.takeOut(a)
	}
	return keep
}

// Word replaces the names in a word of the manifest.
func (c *change) Word(text string) string { return c.Text(text) }

// Document replaces the names in the timeline and the world, and those of the user's files in the plan.
func (c *change) Document(name string, content []byte) ([]byte, error) {
	if name == bundle.PlanFile {
		return planWithout(c.Table, content)
	}
	var out bytes.Buffer
	err := eachValue(bytes.NewReader(content), func(v any, text string) error {
		if v == nil {
			_, err := out.WriteString(c.Text(text))
			return err
		}
		v = mapped(v, "", "", func(_, _, s string) string { return c.Text(s) }, c.Text)
		if world, ok := v.(map[string]any); ok && name == bundle.WorldFile {
			world["plan"], world["redacted"] = c.plan, bundle.Redacted{
				From:    c.from,
				Relapse: version.Relapse(),
			}
		}
		return writeJSON(&out, v)
	})
	return out.Bytes(), err
}

// planWithout returns a plan without the names of the user's files. All other words of a plan stay: checks, loads and
// faults are told by them.
func planWithout(t *Table, content []byte) ([]byte, error) {
	v, ok := decode(content)
	if !ok {
		return nil, fmt.Errorf("reading %s: it is not JSON", bundle.PlanFile)
	}
	var out bytes.Buffer
	plain := func(_, _, s string) string { return t.Plain(s) }
	err := writeJSON(&out, mapped(v, "", "", plain, t.Plain))
	return out.Bytes(), err
}

// Artifact copies an artifact with its names replaced, by what its kind of file is.
func (c *change) Artifact(a bundle.Artifact, w io.Writer, r io.Reader) error {
	switch {
	case path.Ext(a.Path) == ".gz":
		return c.profile(w, r)
	case a.Kind == bundle.Goroutines1 || a.Kind == bundle.Goroutines2:
		c.out.Stacks++
		return eachValue(r, func(v any, text string) error {
			if v == nil && !strings.HasPrefix(text, "# labels:") { // the names of functions must stay
				_, err := io.WriteString(w, c.Plain(text))
				return err
			}
			_, err := io.WriteString(w, c.Text(text))
			return err
		})
	}
	keep := c.lines[a.Kind]
	return eachValue(r, func(v any, text string) error {
		if v == nil {
			_, err := io.WriteString(w, c.Text(text))
			return err
		}
		if m, ok := v.(map[string]any); ok && keep != nil {
			keep.line(m, a.Kind, c.out)
		}
		return writeJSON(w, mapped(v, "", "", c.value, c.Text))
	})
}

// mapped returns a JSON value with f of each of its strings, and with keys of each key that may have names in it. parent
// and key are the keys that the value is below.
func mapped(
	v any,
	parent, key string,
	f func(parent, key, text string) string,
	keys func(string) string,
) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) { // in this order, values get the same stand-ins each time
			is := k
			if labelKeys[key] || wholeKeys[key] || strings.Contains(k, "/") {
				is = keys(k)
			}
			out[is] = mapped(v[k], key, k, f, keys)
		}
		return out
	case []any:
		for i := range v {
			v[i] = mapped(v[i], parent, key, f, keys)
		}
	case string:
		return f(parent, key, v)
	}
	return v
}

// value returns what stands for a string in an artifact: of what nobody knows the meaning of, for all of it.
func (t *Table) value(parent, key, text string) string {
	if wholeKeys[parent] || wholeKeys[key] || parent == "env" && key == "value" {
		return t.Whole(text)
	}
	return t.Text(text)
}

// profile copies a profile without its comments, the paths of its files and the names in its labels.
func (c *change) profile(w io.Writer, r io.Reader) error {
	p, err := profile.Parse(r)
	if err != nil { // it can't be read, and that is what judging has found, too
		_, err := io.WriteString(w, "this profile can't be read\n")
		return err
	}
	c.out.Stacks++
	p.Comments = nil
	for _, m := range p.Mapping {
		m.File = c.Text(filepath.Base(m.File))
	}
	for _, f := range p.Function {
		f.Name, f.SystemName, f.Filename = c.Plain(f.Name), c.Plain(f.SystemName), c.Plain(f.Filename)
	}
	for _, s := range p.Sample {
		for _, values := range s.Label {
			for i := range values {
				values[i] = c.Text(values[i])
			}
		}
	}
	return p.Write(w)
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
