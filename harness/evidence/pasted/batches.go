package pasted

import (
	"bytes"
	"regexp"
	"strings"
)

// ofBatches are the fields in which collectors keep many records of one value.
var ofBatches = []string{"logEvents", "records", "resourceLogs"}

// fromBatches returns the records in values each of which has many; none if some value has none.
func fromBatches(values []any) (all []record) {
	for _, v := range values {
		fields, _ := v.(map[string]any)
		n := len(all)
		for _, name := range ofBatches {
			if list, ok := fields[name].([]any); ok {
				inList(list, record{}.named(fields), &all)
			}
		}
		if len(all) == n {
			return nil
		}
	}
	return all
}

// plainValue returns a value of JSON with OpenTelemetry's typed values as plain ones, and its lists of
// attributes as objects, whose names have _ in place of dots.
func plainValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, kind := range []string{"stringValue", "intValue", "boolValue", "doubleValue"} {
			if one, ok := v[kind]; ok && len(v) == 1 {
				return one
			}
		}
		for k, x := range v {
			v[k] = plainValue(x)
		}
	case []any:
		attributes := map[string]any{}
		for i, x := range v {
			v[i] = plainValue(x)
			if pair, ok := v[i].(map[string]any); ok {
				if key, ok := pair["key"].(string); ok && len(pair) == 2 {
					attributes[strings.ReplaceAll(key, ".", "_")] = pair["value"]
				}
			}
		}
		if len(attributes) > 0 && len(attributes) == len(v) {
			return attributes
		}
	}
	return v
}

var (
	// verboseHead matches the line above a record that journalctl prints with -o verbose.
	verboseHead = regexp.MustCompile(
		`^[A-Z][a-z]{2} ([0-9-]{10} [0-9:]{8}(?:\.[0-9]+)?) (\S+) \[s=[0-9a-f]+;i=[0-9a-f]+`,
	)
	verboseField = regexp.MustCompile(`^    ([A-Z_][A-Z0-9_]*)=(.*)$`)
)

// fromVerbose returns the records that journalctl prints with -o verbose, a field a line; none of any other
// text.
func fromVerbose(text []byte) (all []record) {
	if !verboseHead.Match(text) {
		return nil
	}
	var last string // the field of the line before
	for _, l := range lines(text) {
		if m := verboseHead.FindSubmatch(l.Text); m != nil {
			all, last = append(all, record{}), ""
			if string(m[2]) == "UTC" {
				all[len(all)-1].at = momentOf(string(m[1]))
			}
			continue
		}
		r := &all[len(all)-1]
		m := verboseField.FindSubmatch(l.Text)
		switch {
		case m != nil:
			switch last = string(m[1]); last {
			case "MESSAGE":
				r.text = string(m[2])
			case "SYSLOG_IDENTIFIER":
				r.container, r.pod = strings.Map(plainRune, string(m[2])), "journal"
			}
		case last == "MESSAGE": // it has several lines, each as far from the left as the first
			r.text += "\n" + string(bytes.TrimPrefix(l.Text, []byte("            ")))
		}
	}
	return all
}

// sequence takes off what stands before each record of JSON in a sequence: as journalctl prints it with
// -o json-seq, and with -o json-sse, as browsers are sent it.
func sequence(text []byte) ([]byte, bool) {
	event := []byte("data: {")
	switch {
	case bytes.HasPrefix(text, []byte("\x1e{")):
		return bytes.ReplaceAll(text, []byte("\x1e"), nil), true
	case bytes.HasPrefix(text, event):
		text = bytes.ReplaceAll(text, []byte("\n\ndata: {"), []byte("\ndata: {"))
		return bytes.ReplaceAll(text[len("data: "):], []byte("\ndata: {"), []byte("\n{")), true
	}
	return nil, false
}

// ofTables are the names that databases give to a table's columns and to its rows, each of which is a list of values.
var ofTables = [...][2]string{{"schema", "datarows"}, {"columns", "rows"}, {"meta", "data"}, {"columns", "values"}, {"fields", "rows"}}

// rowsOf returns the rows of a table as objects; none of anything else.
func rowsOf(v map[string]any) (all []any) {
	for _, of := range ofTables {
		heads, _ := v[of[0]].([]any)
		rows, _ := v[of[1]].([]any)
		var names []string
		for _, h := range heads {
			name, _ := h.(string)
			if column, ok := h.(map[string]any); ok {
				name = field(column, []string{"name", "Name", "text", "ColumnName"})
			}
			names = append(names, name)
		}
		for _, row := range rows {
			cells, ok := row.([]any)
			if !ok || len(cells) != len(names) || len(names) < 2 {
				return nil
			}
			fields := map[string]any{}
			for i, name := range names {
				fields[name] = cells[i]
			}
			all = append(all, fields)
		}
		if len(all) > 0 {
			return all
		}
	}
	return nil
}
