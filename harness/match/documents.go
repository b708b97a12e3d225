package match

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"sigs.k8s.io/yaml"

	"github.com/kube-relapse/relapse/harness/match/resource"
)

// maxDocument bounds a file of resources in JSON, in bytes. Its resources are read one by one.
const maxDocument = 256 << 20

var documentBegin = regexp.MustCompile(
	`^(---\s*\n)?(#[^\n]*\n)*(apiVersion|kind|items|metadata):|` +
		`^\{\s*"(apiVersion|kind|items|metadata)":|^` + logsBegin,
)

// document reports whether a file begins like resources.
func document(begin []byte) bool { return documentBegin.Match(begin) }

// documents calls visit for each resource of a file, and for each item of a list. After a broken resource in YAML the
// others are still read; in JSON the first error ends the reading. If a container's logs follow, rest begins with them,
// and lines is how many lines lie above them.
func documents(
	in *bufio.Reader,
	visit func(manifest),
) (rest *bufio.Reader, lines int, err error) {
	for {
		c, err := in.Peek(1)
		if err != nil {
			return nil, 0, nil
		}
		switch c[0] {
		case ' ', '\t', '\r', '\n':
			if in.Discard(1); c[0] == '\n' {
				lines++
			}
		case '{':
			rest, more, err := jsonDocuments(in, visit)
			return rest, lines + more, err
		default:
			if atLogs(in) {
				return in, lines, nil
			}
			return nil, 0, yamlDocuments(in, visit)
		}
	}
}

// jsonDocuments reads JSON values that follow each other, and calls visit for each resource.
func jsonDocuments(
	in io.Reader,
	visit func(manifest),
) (rest *bufio.Reader, lines int, err error) {
	limited := &io.LimitedReader{R: in, N: maxDocument}
	counted := &newlines{Reader: limited}
	d := json.NewDecoder(counted)
	for {
		err := jsonDocument(d, visit)
		switch {
		case limited.N == 0:
			return nil, 0, fmt.Errorf(
				"it is over %d bytes long: its rest was not read",
				maxDocument,
			)
		case errors.Is(err, io.EOF):
			return nil, 0, nil
		case err != nil:
			ahead, _ := io.ReadAll(d.Buffered()) // reads from memory, so it can't fail
			rest = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(ahead), in), 256<<10)
			if atLogs(rest) {
				return rest, counted.n - bytes.Count(ahead, []byte("\n")), nil
			}
			return nil, 0, err
		}
	}
}

// jsonDocument reads one JSON value. It calls visit for each item of a list, and once for the other fields of the
// value.
func jsonDocument(d *json.Decoder, visit func(manifest)) error {
	fields, err := resource.Document(d, visit)
	if err != nil {
		return err
	}
	return one(fields, visit)
}

func one(fields map[string]json.RawMessage, visit func(manifest)) error {
	raw, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	var m manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	visit(m)
	return nil
}

// yamlDocuments reads documents line by line, and each item of a list separately. It expects lists as kubectl and oc
// write them: the first line of an item begins with "- ", all its other lines with two spaces.
func yamlDocuments(in *bufio.Reader, visit func(manifest)) error {
	var bad error
	var text bytes.Buffer
	var buffer []byte
	items, item, over := false, false, 0
	flush := func() {
		b := text.Bytes()
		if over > resource.Max {
			bad = errors.Join(
				bad,
				fmt.Errorf("a resource is over %d bytes long: not read", resource.Max),
			)
		} else if len(bytes.TrimSpace(b)) > 0 {
			var m manifest
			if err := yaml.Unmarshal(b, &m); err != nil {
				bad = errors.Join(bad, err)
			} else {
				visit(m)
			}
		}
		text.Reset()
		over = 0
	}
	for {
		raw, long, err := nextLine(in, &buffer)
		switch {
		case bytes.HasPrefix(raw, []byte("---")):
			flush()
			items, item = false, false
		case bytes.Equal(raw, []byte("items:")):
			items = true
		case items && bytes.HasPrefix(raw, []byte("- ")):
			flush()
			item = true
			raw = append([]byte("  "), raw[2:]...)
			fallthrough
		default:
			if item && len(raw) > 0 && raw[0] != ' ' { // the list is over
				flush()
				items, item = false, false
			}
			if over += len(raw) + 1; long {
				over += resource.Max
			}
			if over <= resource.Max {
				text.Write(raw)
				text.WriteByte('\n')
			}
		}
		if err != nil {
			flush()
			if errors.Is(err, io.EOF) {
				return bad
			}
			return errors.Join(bad, err)
		}
	}
}
