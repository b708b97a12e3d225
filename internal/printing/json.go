// Package printing writes what commands print: tables as text and as Markdown, and JSON.
package printing

import (
	"encoding/json"
	"io"
)

// WriteJSON writes a value as JSON, indented by two spaces, with <, > and & as they are and a newline at its end.
func WriteJSON(w io.Writer, value any) error { return encode(w, value, "  ") }

// WriteJSONLine writes a value as WriteJSON does, but on one line.
func WriteJSONLine(w io.Writer, value any) error { return encode(w, value, "") }

func encode(w io.Writer, value any, indent string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	return enc.Encode(value)
}
