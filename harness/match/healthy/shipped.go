package healthy

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Folder is where the baselines lie in the module. They are part of the program.
const Folder = "harness/match/healthy"

//go:embed *.json
var files embed.FS

// Shipped are the baselines that are part of this program.
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
		b := &Baseline{}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(b); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		if b.Schema != Schema || b.Component+".json" != name {
			return nil, fmt.Errorf("reading %s: it is %q of %q, want %s", name, b.Schema, b.Component, Schema)
		}
		out = append(out, b)
	}
	return out, nil
})

// Write writes the baseline below the module's root, a place a line. The program has it once it is built anew.
func (b *Baseline) Write(root string) (string, error) {
	head := *b
	head.Places = nil
	raw, err := json.MarshalIndent(head, "", " ")
	if err != nil {
		return "", err
	}
	out := bytes.NewBuffer(bytes.TrimSuffix(raw, []byte("null\n}")))
	out.WriteString("[")
	for i, p := range b.Places {
		line, err := json.Marshal(p)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(out, "%s\n  %s", map[bool]string{true: ","}[i > 0], line)
	}
	out.WriteString("\n ]\n}\n")
	at := filepath.Join(root, filepath.FromSlash(Folder), b.Component+".json")
	return at, os.WriteFile(at, out.Bytes(), 0o644)
}
