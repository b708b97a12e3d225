package redact

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// nameKeys are the keys whose value is a name, or made of names: NAMESPACE/NAME, an API path, the path of a log file.
var nameKeys = setOf(
	`name generateName namespace node nodeName pod podName hostname host _HOSTNAME object user username
	serviceAccountName serviceAccount secretName claimName volumeName reportingInstance holderIdentity path file url image
	key ran hostIP podIP app instance exported_namespace exported_pod persistentvolumeclaim`,
)

// wholeKeys are the keys of lists or maps whose values are replaced as a whole: nobody knows what they say.
var wholeKeys = setOf("annotations args command data stringData binaryData")

// labelKeys are the keys of maps with labels, whose keys and values are names.
var labelKeys = setOf("labels matchLabels nodeSelector")

// vocabulary are the keys of lists whose elements have names that code or a protocol gave them.
var vocabulary = setOf("ports managedFields conditions rules verbs resources")

func setOf(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

// learn has the table learn the names in an artifact.
func (t *Table) learn(a bundle.Artifact, r io.Reader) error {
	if path.Ext(strings.TrimSuffix(a.Path, bundle.Packed)) == ".gz" {
		return nil // a profile: see profiles
	}
	return eachValue(r, func(v any, text string) error {
		switch {
		case v == nil:
			t.fromText(text)
		case a.Kind == bundle.MetricSamples:
			t.fromValue(v, "samples")
		default:
			t.fromValue(v, "")
		}
		return nil
	})
}

// fromValue learns the names in a JSON value, which key has.
func (t *Table) fromValue(v any, key string) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			switch {
			case key == "samples" && k == "name" || vocabulary[k]: // the name of a metric
			case key == "samples":
				t.fromValue(inner, "")
			case labelKeys[k] || k == "annotations":
				t.fromLabels(inner)
			case k == "env":
				continue
			default:
				t.fromValue(inner, k)
			}
		}
	case []any:
		for _, inner := range v {
			t.fromValue(inner, key)
		}
	case string:
		if nameKeys[key] {
			t.fromPath(v)
		}
		t.fromText(v)
	}
}

// fromLabels learns the names in a map of labels or annotations: those in the domains of its keys, and short values.
func (t *Table) fromLabels(v any) {
	m, _ := v.(map[string]any)
	for k, value := range m {
		if domain, _, ok := strings.Cut(k, "/"); ok && !strings.HasSuffix(domain, "k8s.io") && !strings.HasSuffix(domain, "kubernetes.io") {
			t.Name(domain)
		}
		if s, ok := value.(string); ok && len(s) < 64 {
			t.fromPath(s)
		}
	}
}

// apiWords are the words of API paths and of log files that are no names.
var apiWords = setOf("api apis v1 v1beta1 v1alpha1 namespaces pods services configmaps secrets nodes events status scale log metrics healthz livez readyz var proc sys etc usr tmp")

// fromPath learns the names in a value that is one name, or several with something between them.
func (t *Table) fromPath(value string) {
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune("/_:@ ?&=,", r) }) {
		if !apiWords[part] && !strings.HasSuffix(part, ".log") {
			t.Name(part)
		}
	}
}

// fromText learns the names in a text: those that klog prints with their keys, and the hosts of URLs.
func (t *Table) fromText(text string) {
	if strings.Contains(text, `="`) || strings.Contains(text, `=\"`) {
		for _, m := range inKlog.FindAllStringSubmatch(text, -1) {
			t.fromPath(m[1])
		}
	}
	if strings.Contains(text, "://") {
		for _, m := range urlHost.FindAllStringSubmatch(text, -1) {
			t.Name(m[1])
		}
	}
}

// eachValue calls take with each value of a file of JSON or of JSON lines, and with each line that is none.
func eachValue(r io.Reader, take func(v any, text string) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	head, _ := in.Peek(64) // a short read is judged by what is there; its error comes back with the next read
	if h := bytes.TrimLeft(head, " \t\r\n"); len(h) > 0 && (h[0] == '{' || h[0] == '[') {
		b, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		if v, ok := decode(b); ok {
			return take(v, "")
		}
		in = bufio.NewReader(bytes.NewReader(b))
	}
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			v, ok := any(nil), false
			if line[0] == '{' {
				v, ok = decode(line)
			}
			if !ok {
				v = nil
			}
			if err := take(v, string(line)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// decode returns one JSON value, with its numbers as they are written.
func decode(b []byte) (v any, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return nil, false
	}
	_, err := dec.Token()
	return v, err == io.EOF && v != nil
}
