package scenario

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// folder reads the files that stand beside a scenario's file, and remembers what it read.
type folder struct {
	dir  string
	read map[string][]byte
}

// file returns the content of a file below the folder, and remembers it.
func (f *folder) file(name string) ([]byte, error) {
	text, err := f.content(name)
	if err == nil {
		f.read[name] = text
	}
	return text, err
}

// content returns the content of a file below the folder.
func (f *folder) content(name string) ([]byte, error) {
	if text, ok := f.read[name]; ok {
		return text, nil
	}
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%q is not below the scenario's folder", name)
	}
	root, err := os.OpenRoot(f.dir) // no link leads out of it
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%q is not in the scenario's folder", name)
	case err != nil:
		return nil, fmt.Errorf("%q can't be read: %w", name, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%q is no regular file", name)
	case info.Size() > maxBytes:
		return nil, fmt.Errorf(
			"%q is %d bytes long (want at most %d)",
			name,
			info.Size(),
			maxBytes,
		)
	}
	text, err := root.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%q can't be read: %w", name, err)
	}
	return text, nil
}

// digest returns the SHA-256 of a scenario's text and of all that was read beside it, in hex.
func (f *folder) digest(text []byte) string {
	sum := sha256.New()
	sum.Write(text)
	for _, name := range slices.Sorted(maps.Keys(f.read)) {
		fmt.Fprintf(sum, "\x00%s\x00%d\x00", name, len(f.read[name]))
		sum.Write(f.read[name])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Digest returns the digest that the scenario in a file has if it refers to the files beside, which it doesn't find out.
func Digest(file string, beside []string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading scenario %s: %w", file, err)
	}
	f := &folder{filepath.Dir(file), map[string][]byte{}}
	for _, name := range beside {
		if _, err := f.file(name); err != nil {
			return "", fmt.Errorf("reading what scenario %s refers to: %w", file, err)
		}
	}
	return f.digest(text), nil
}

// Beside returns the names of the other files in the scenario's folder that it refers to.
func (o *Origin) Beside() []string {
	if o.beside == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(o.beside.read))
}

// manifestFiles puts the objects of a file in place of {file: NAME} among the manifests of a list's items.
func (e *expansion) manifestFiles(list string) {
	for i, v := range e.list(list) {
		path := []string{"spec", list, strconv.Itoa(i), "spec"}
		if item, ok := v.(map[string]any); ok {
			e.filesBelow(item["spec"], path)
		}
	}
}

// filesBelow looks for manifests in v, which is at path.
func (e *expansion) filesBelow(v any, path []string) {
	switch v := v.(type) {
	case []any:
		for i, member := range v {
			e.filesBelow(member, steps(path, strconv.Itoa(i)))
		}
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(v)) {
			if manifests, ok := v[field].([]any); ok && field == "manifests" {
				v[field] = e.objects(manifests, steps(path, field))
				continue
			}
			e.filesBelow(v[field], steps(path, field))
		}
	}
}

// objects returns manifests, which are at path below an item's spec, with the objects of files in place of the files.
func (e *expansion) objects(manifests []any, path []string) (out []any) {
	for i, v := range manifests {
		in := steps(e.place(path), strconv.Itoa(i))
		name, is := manifestFile(v)
		if !is {
			e.from[key(steps(path, strconv.Itoa(len(out))))] = in
			out = append(out, v)
			continue
		}
		objects, err := e.d.beside.objects(name)
		if err != nil {
			e.complain(steps(in, "file"), "%s", err)
			e.d.lost = append(e.d.lost, path[:4]) // what else is said of the spec only follows from it
			continue
		}
		for _, o := range objects {
			e.from[key(steps(path, strconv.Itoa(len(out))))] = in
			out = append(out, o)
		}
	}
	return out
}

// manifestFile returns the name of the file that a manifest stands for. No object has a field file alone.
func manifestFile(v any) (name string, is bool) {
	m, ok := v.(map[string]any)
	if !ok || len(m) != 1 {
		return "", false
	}
	name, is = m["file"].(string)
	return name, is
}

// objects returns the objects that a YAML file has, one a document. Each is read as strictly as the scenario itself.
func (f *folder) objects(name string) (out []any, err error) {
	text, err := f.file(name)
	if err != nil {
		return nil, err
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		one, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%q, document %d: %w", name, n, err)
		}
		if blank(one) {
			continue
		}
		d := read(name, "object", one)
		if len(d.found) > 0 {
			first := d.found.sorted()[0]
			return nil, fmt.Errorf(
				"%q, document %d, line %d of it: %s",
				name,
				n,
				first.Line,
				strings.TrimPrefix(first.Path+": "+first.Message, ": "),
			)
		}
		out = append(out, d.value)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%q has no object", name)
	}
	return out, nil
}

// blank reports whether a document has nothing but comments.
func blank(document []byte) bool {
	for line := range bytes.Lines(document) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}
