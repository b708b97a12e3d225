package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// FileName is the name of every scenario's file. Its folder has the scenario's name.
const FileName = "scenario.yaml"

// Origin says where a scenario was read from.
type Origin struct {
	File   string // as it was given to Load or Parse
	Digest string // SHA-256 of the bytes, and of other files that it refers to, hex

	text     string              // what Override starts from; "" if nothing was read
	beside   *folder             // the other files that were read
	settings []map[string]string // that Override applied to the text, the strongest layer last
	derived  map[string]bool     // the paths of values that the text doesn't have
	surveyed *Surveyed           // the answers of a survey next to it, nil if there are none
	encoded  []byte              // the resulting scenario as JSON, which shows whether it was changed since
}

// Derived returns the paths of the values that the scenario's file doesn't have: they come from the subject, from the
// scenario's version, or from a check that another one refers to. The steps of a path are field names and list indexes.
func (s *Scenario) Derived() [][]string {
	if s.Origin == nil {
		return nil
	}
	var out [][]string
	for _, k := range slices.Sorted(maps.Keys(s.Origin.derived)) {
		out = append(out, strings.Split(k, "\x00"))
	}
	return out
}

// Load reads and validates the scenario file at path. Mistakes in its content are returned as Violations.
func Load(path string) (*Scenario, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading scenario %s: %w", path, err)
	}
	name := ""
	if filepath.Base(path) == FileName {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("finding the folder of scenario %s: %w", path, err)
		}
		name = filepath.Base(filepath.Dir(abs))
	}
	s, err := parse(path, name, text, filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	s.Origin.surveyed, err = loadSurveyed(path, s.Metadata.Name)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Parse validates the text of a scenario and reports all mistakes at once. file is the name that violations show; other
// files that the scenario refers to are read from its folder.
func Parse(file string, text []byte) (*Scenario, error) {
	return parse(file, "", text, filepath.Dir(file))
}

// parse reads a scenario whose name must be that of its folder, unless that is "". dir has the files that it refers to.
func parse(file, name string, text []byte, dir string) (*Scenario, error) {
	d := read(file, "scenario", text)
	d.beside = &folder{dir, map[string][]byte{}}
	if d.value == nil {
		if len(d.found) == 0 {
			d.add(position{1, 1}, nil, "is empty (want a scenario)")
		}
		return nil, d.found.sorted()
	}
	d.expand()
	s, err := d.scenario(name, nil)
	if err != nil {
		return nil, err
	}
	s.Origin.derived = d.derived
	s.Origin.File, s.Origin.Digest, s.Origin.text, s.Origin.beside = file, d.beside.digest(text), string(text), d.beside
	return s, nil
}

// scenario builds a scenario from a document, using the parameter values in given. Mistakes in the document are
// returned as Violations.
func (d *document) scenario(folder string, given map[string]string) (*Scenario, error) {
	params := d.declared()
	values, err := choose(params, given)
	if err != nil {
		return nil, err
	}
	used := d.substitute(params, values)
	if err := d.unused(params, used, values, given); err != nil {
		return nil, err
	}
	d.manifests()
	s, err := d.decode(folder)
	if err != nil {
		return nil, err
	}
	if len(d.found) > 0 {
		return nil, d.found.sorted()
	}
	encoded, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding scenario %s: %w", s.Metadata.Name, err)
	}
	s.Values = values
	s.Origin = &Origin{encoded: encoded}
	return s, nil
}

// decode applies the schema, then the rules between fields, and adds their complaints to d.found. An error means a
// mistake in the program, such as a kind without a schema.
func (d *document) decode(folder string) (*Scenario, error) {
	v, err := compiled()
	if err != nil {
		return nil, err
	}
	tree, err := numbered(d.value)
	if err != nil {
		return nil, fmt.Errorf("converting %s to JSON: %w", d.file, err)
	}
	textArgs(tree)
	s := &Scenario{}
	return s, d.into(s, v, tree, func(known []complaint) []complaint {
		if _, fields := lookup(tree, []string{"spec"}).(map[string]any); !fields { // then nothing is known of its fields
			return nil
		}
		return related(s, folder, known)
	})
}

// into validates tree with v, decodes it into out and applies the rules between fields. It adds all complaints to
// d.found.
func (d *document) into(
	out any,
	v *validator,
	tree any,
	rules func(known []complaint) []complaint,
) error {
	complaints := v.check(tree)
	// Values of the wrong type are removed, so that the rules between fields still see the rest.
	for _, c := range complaints {
		tree = without(tree, c.path)
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return fmt.Errorf("converting %s to JSON: %w", d.file, err)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		complaints = append(complaints, complaint{message: err.Error()})
	} else {
		complaints = append(complaints, rules(complaints)...)
	}
	var all []mistake
	for _, c := range complaints {
		all = append(all, mistake{c.path, c.message})
	}
	for i, c := range complaints {
		if d.echoes(c.path) || d.repeats(all[i], all) {
			continue
		}
		about := c.about
		if about == nil {
			about = c.path
		}
		d.add(d.positionOfComplaint(about, c), d.written(c.path), "%s", c.message)
	}
	return nil
}

// positionOfComplaint returns where to show a complaint: at the key if the field doesn't belong there, else at the
// value.
func (d *document) positionOfComplaint(about []string, c complaint) position {
	if len(d.values) == 0 {
		return position{}
	}
	if k, ok := d.keys[key(about)]; ok && c.about != nil {
		return k
	}
	return d.positionOf(about)
}

// numbered converts plain values to those that the schema validator reads, with numbers as json.Number.
func numbered(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(raw))
}

// without removes the value at path from its mapping and returns v. A list member is emptied instead, so that the
// indexes of the others stay the same.
func without(v any, path []string) any {
	if len(path) == 0 {
		return map[string]any{}
	}
	switch t := v.(type) {
	case map[string]any:
		if child, ok := t[path[0]]; ok {
			if len(path) == 1 {
				delete(t, path[0])
			} else {
				t[path[0]] = without(child, path[1:])
			}
		}
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(t) {
			return v
		}
		if len(path) > 1 {
			t[i] = without(t[i], path[1:])
		} else if _, text := t[i].(string); text {
			t[i] = ""
		} else {
			t[i] = nil
		}
	}
	return v
}

// under reports whether one of the complaints is about path or anything below it.
func under(complaints []complaint, path ...string) bool {
	return slices.ContainsFunc(complaints, func(c complaint) bool {
		return len(c.path) >= len(path) && slices.Equal(c.path[:len(path)], path)
	})
}
