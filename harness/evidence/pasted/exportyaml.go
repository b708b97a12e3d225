package pasted

import (
	"bytes"

	"sigs.k8s.io/yaml"
)

var (
	// entryBegins are how an entry begins, as gcloud logging read prints it.
	entryBegins = [][]byte{[]byte("---\n"), []byte("insertId: ")}
	payloads    = [][]byte{[]byte("\ntextPayload: "), []byte("\njsonPayload:\n")}
)

// fromYAML returns the records of Cloud Logging's entries in YAML, each of which is a document; none if it isn't that.
func fromYAML(text []byte) (all []record) {
	if !hasAny(bytes.HasPrefix, text, entryBegins) || !hasAny(bytes.Contains, text, payloads) {
		return nil
	}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var v any
		if yaml.Unmarshal(document, &v) != nil {
			continue
		}
		if r, ok := recordOf(v, record{}); ok {
			all = append(all, r)
		}
	}
	return all
}

func hasAny(has func(text, part []byte) bool, text []byte, parts [][]byte) bool {
	for _, p := range parts {
		if has(text, p) {
			return true
		}
	}
	return false
}
