package scenario

import (
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// Reader reads YAML files strictly by a schema, as scenarios are read: every mistake of a file is reported at once, each
// with its line and column.
type Reader struct {
	kind string
	v    *validator
}

// NewReader returns a reader of files that have this schema. kind is what mistakes call such a file. In no field is null
// a value.
func NewReader(kind string, s *jsonschema.Schema) (*Reader, error) {
	withoutNull(s)
	v, err := newValidator(func() (*jsonschema.Schema, error) { return s, nil })
	return &Reader{kind, v}, err
}

// Read decodes the text of a file into out, a pointer. rules reports what the schema can't express about out: add takes
// the path of the value, which is field names and list indexes, and the message. Mistakes are returned as Violations.
func (r *Reader) Read(
	file string,
	text []byte,
	out any,
	rules func(add func(message string, path ...string)),
) error {
	d := read(file, r.kind, text)
	if d.value == nil {
		if len(d.found) == 0 {
			d.add(position{1, 1}, nil, "is empty (want a %s)", r.kind)
		}
		return d.found.sorted()
	}
	tree, err := numbered(d.value)
	if err != nil {
		return fmt.Errorf("converting %s to JSON: %w", file, err)
	}
	err = d.into(out, r.v, tree, func([]complaint) (found []complaint) {
		rules(
			func(message string, path ...string) { found = append(found, complaint{path: path, message: message}) },
		)
		return found
	})
	if err != nil {
		return err
	}
	if len(d.found) > 0 {
		return d.found.sorted()
	}
	return nil
}
