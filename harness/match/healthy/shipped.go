package healthy

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Folder is where the baselines lie in the module. They are embedded in the program.
const Folder = "harness/match/healthy"

//go:embed *.json
var files embed.FS

// Shipped returns the baselines that are embedded in this program.
var Shipped = sync.OnceValues(func() (out []*Baseline, err error) {
	names, err := fs.Glob(files, "*.json")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		b, err := parse(name, raw)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
})

func parse(name string, raw []byte) (*Baseline, error) {
	b := &Baseline{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(b); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if b.Schema != schema || b.Component+".json" != name {
		return nil, fmt.Errorf(
			"reading %s: it is %q of %q, want %s",
			name,
			b.Schema,
			b.Component,
			schema,
		)
	}
	return b, nil
}

// Write writes the baseline to its file below the module's root, one place a line. It returns the file and the baseline
// that the file holds now. If the file holds only other versions, they are kept. If it holds some of these versions and
// others too, Write refuses it, because the versions can't be told apart. The program has the new baseline once it is
// built again.
func (b *Baseline) Write(root string) (string, *Baseline, error) {
	name := b.Component + ".json"
	at := filepath.Join(root, filepath.FromSlash(Folder), name)
	raw, err := os.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		return at, b, b.write(at)
	} else if err != nil {
		return "", nil, err
	}
	old, err := parse(name, raw)
	if err != nil {
		return "", nil, err
	}
	var again, others []string
	for _, v := range old.Versions() {
		if slices.Contains(b.Versions(), v) {
			again = append(again, v)
		} else {
			others = append(others, v)
		}
	}
	switch {
	case len(again) > 0 && len(others) > 0:
		return "", nil, fmt.Errorf(
			"%s holds %s and %s in one: remove it to make it anew, of dumps of both",
			at,
			strings.Join(again, ", "),
			strings.Join(others, ", "),
		)
	case len(others) > 0:
		b = b.with(old)
	}
	return at, b, b.write(at)
}

func (b *Baseline) write(at string) error {
	head := *b
	head.Places = nil
	raw, err := json.MarshalIndent(head, "", " ")
	if err != nil {
		return err
	}
	out := bytes.NewBuffer(bytes.TrimSuffix(raw, []byte("null\n}")))
	out.WriteString("[")
	for i, p := range b.Places {
		line, err := json.Marshal(p)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n  %s", map[bool]string{true: ","}[i > 0], line)
	}
	out.WriteString("\n ]\n}\n")
	return os.WriteFile(at, out.Bytes(), 0o644)
}
