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

// The most entries that are read, and the longest, in bytes. Cloud Logging has none that is longer than 256 KiB.
const (
	maxEntries = 20_000
	maxEntry   = 256 << 10
)

// fromYAML returns the records of Cloud Logging's entries in YAML, each of which is a document; none if it isn't that.
func fromYAML(text []byte) (all []record) {
	if !hasAny(bytes.HasPrefix, text, entryBegins) || !hasAny(bytes.Contains, text, payloads) {
		return nil
	}
	for _, document := range bytes.SplitN(text, []byte("\n---\n"), maxEntries) {
		var v any
		if len(document) > maxEntry || yaml.Unmarshal(document, &v) != nil {
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
