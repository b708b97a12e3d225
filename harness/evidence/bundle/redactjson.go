package bundle

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strings"
)

// redactJSON returns a JSON value without its secrets. Bytes that aren't JSON are redacted as text.
func redactJSON(b []byte) []byte {
	if out, ok := redactStructure(b, nil); ok {
		return out
	}
	var red redactor
	return red.text(b)
}

// redactStructure returns one JSON value without its secrets: it redacts the data of Secrets, the values of telling
// keys, and every string as text. A value without secrets comes back byte for byte. The result is false if b is not one
// JSON value. key follows a private key that a journal cuts into several messages; it may be nil.
func redactStructure(b []byte, key *redactor) ([]byte, bool) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, false
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, false
	}
	wk := walker{key: key}
	v = wk.value("", v, false)
	if !wk.changed {
		return b, true
	}
	out, err := encode(v)
	if err != nil {
		return nil, false
	}
	if bytes.HasSuffix(b, []byte("\n")) {
		out = append(out, '\n')
	}
	return out, true
}

// encode returns v as JSON, without HTML escapes and without a newline at the end.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// walker goes through a decoded JSON value and remembers whether it changed anything.
type walker struct {
	key     *redactor
	changed bool
}

// value returns v without its secrets. name is the key of v; in says that v belongs to a list of Secrets.
func (w *walker) value(name string, v any, in bool) any {
	switch v := v.(type) {
	case map[string]any:
		return w.object(v, in)
	case []any:
		if b, ok := byteList(v); ok {
			if out := w.text(name, string(b)); out != string(b) {
				return out
			}
			return v
		}
		for i := range v {
			v[i] = w.value(name, v[i], in)
		}
		return v
	case string:
		if telling(name) && v != "" && v != redacted {
			w.changed = true
			return redacted
		}
		return w.text(name, v)
	}
	return v
}

func (w *walker) object(m map[string]any, in bool) any {
	kind, _ := m["kind"].(string)
	secret := kind == "Secret" || in && kind == ""
	for k, v := range m {
		switch {
		case secret && (k == "data" || k == "stringData"):
			m[k] = w.blank(v)
		default:
			m[k] = w.value(k, v, kind == "SecretList" && k == "items")
		}
	}
	return m
}

// blank removes the values of a Secret's data and keeps the keys.
func (w *walker) blank(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		if v != nil {
			w.changed = true
			return redacted
		}
		return v
	}
	for k := range m {
		if m[k] != redacted {
			m[k], w.changed = redacted, true
		}
	}
	return m
}

// text redacts a string line by line. A private key that is cut into several messages is followed from one to the next.
func (w *walker) text(name, s string) string {
	red := &redactor{}
	if name == "MESSAGE" && w.key != nil {
		red = w.key
	}
	var out string
	if strings.Contains(s, "\n") && !strings.HasPrefix(strings.TrimSpace(s), "{") {
		lines := strings.Split(s, "\n")
		for i, l := range lines {
			lines[i] = string(red.line([]byte(l)))
		}
		out = strings.Join(lines, "\n")
	} else {
		out = string(red.line([]byte(s)))
	}
	w.changed = w.changed || out != s
	return out
}

// telling reports whether a key's name alone makes its value a secret.
func telling(name string) bool {
	switch strings.ToLower(name) {
	case "token", "client-key-data", "id-token", "refresh-token", "access_token", "refresh_token", "id_token",
		"bearertoken",
		"password",
		"passwd",
		"client_secret",
		"client-secret",
		".dockerconfigjson",
		"authorization",
		"tls.key":
		return true
	}
	return false
}

// byteList decodes a list of small numbers: that is how journalctl writes a message that is not printable.
func byteList(v []any) ([]byte, bool) {
	if len(v) < 8 {
		return nil, false
	}
	out := make([]byte, 0, len(v))
	for _, e := range v {
		n, ok := e.(json.Number)
		if !ok {
			return nil, false
		}
		i, err := n.Int64()
		if err != nil || i < 0 || i > 255 {
			return nil, false
		}
		out = append(out, byte(i))
	}
	return out, true
}

// redactEmbedded redacts Secrets that stand as JSON, or as Go prints them, in the middle of a text.
func redactEmbedded(b []byte) []byte {
	var out []byte
	for len(b) > 0 {
		i := bytes.IndexByte(b, '{')
		if i < 0 {
			break
		}
		out = append(out, b[:i]...)
		b = b[i:]
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.UseNumber()
		var v map[string]any
		if dec.Decode(&v) != nil {
			out, b = append(out, '{'), b[1:]
			continue
		}
		piece := b[:dec.InputOffset()]
		if red, ok := redactStructure(piece, nil); ok {
			piece = red
		}
		out, b = append(out, piece...), b[dec.InputOffset():]
	}
	out = append(out, b...)
	return redactFragments(out)
}

var (
	secretKind = regexp.MustCompile(`\\*"kind\\*":\s*\\*"Secret(?:List)?\\*"|\bv1\.Secret(?:List)?\{|&Secret(?:List)?\{`)
	jsonData   = regexp.MustCompile(`(\\*"(?:data|stringData)\\*":\s*\{)[^}]*`)
	goData     = regexp.MustCompile(`(\b(?:Data|StringData):\s*map\[string\](?:\[\]uint8|\[\]byte|string)\{)(?:[^{}]|\{[^{}]*\})*`)
)

// redactFragments blanks the data of Secrets that can't be decoded: cut off, escaped twice, or printed by Go.
func redactFragments(b []byte) []byte {
	if !secretKind.Match(b) {
		return b
	}
	b = jsonData.ReplaceAllFunc(b, func(m []byte) []byte {
		if bytes.Contains(m, []byte(redacted)) {
			return m
		}
		return append(bytes.Clone(jsonData.FindSubmatch(m)[1]), redacted...)
	})
	return goData.ReplaceAll(b, []byte("${1}"+redacted))
}

var (
	yamlSecret = regexp.MustCompile(`^\s*(?:- )?kind:\s*"?Secret(?:List)?"?\s*$`)
	yamlData   = regexp.MustCompile(`^(\s*)(?:- )?(?:data|stringData):\s*$`)
	yamlValue  = regexp.MustCompile(`^(\s*[^\s:]+:\s*)\S.*$`)
)

// secretYAML redacts a line in the data of a Secret in YAML, and returns false for any other line. It needs the kind
// before the data. Manifests of Secrets with the data first go through no collector, because a snapshot of a Secret is
// JSON.
func (r *redactor) secretYAML(b []byte) ([]byte, bool) {
	if r.yaml && r.inDoc > 0 {
		indent := len(b) - len(bytes.TrimLeft(b, " "))
		if len(bytes.TrimSpace(b)) == 0 {
			return b, true
		}
		if indent >= r.inDoc {
			if m := yamlValue.FindSubmatch(b); m != nil {
				return append(bytes.Clone(m[1]), redacted...), true
			}
			return append(bytes.Repeat([]byte(" "), indent), redacted...), true
		}
		r.inDoc = 0
	}
	switch {
	case bytes.HasPrefix(b, []byte("---")):
		r.yaml = false
	case yamlSecret.Match(b):
		r.yaml = true
	case r.yaml:
		if m := yamlData.FindSubmatch(b); m != nil {
			r.inDoc = len(m[1]) + 1
		}
	}
	return b, false
}
