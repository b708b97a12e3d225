package pasted

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// fromCSV returns the records of CSV whose first line names a column with texts; none if it isn't that.
func fromCSV(text []byte) (all []record) {
	head, _, more := bytes.Cut(text, newline)
	headless := more && timedRow.Match(head) && bytes.Contains(text, []byte(",\""))
	if headless {
		text = append([]byte("time,message\n"), text...)
		head, _, _ = bytes.Cut(text, newline)
	}
	if !more || !bytes.ContainsAny(head, ",;\t") || len(head) > 4<<10 || bytes.ContainsAny(bytes.ReplaceAll(head, []byte(" [UTC]"), nil), "[](){}") {
		return nil
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.LazyQuotes, r.FieldsPerRecord = true, -1
	for _, comma := range ",;\t" {
		if bytes.ContainsRune(head, comma) {
			r.Comma = comma
			break
		}
	}
	names, err := r.Read()
	if err != nil {
		return nil
	}
	column := func(known []string) int {
		for _, k := range known {
			if i := slices.IndexFunc(names, func(n string) bool {
				n = strings.ToLower(strings.Trim(n, "\ufeff \""))
				return n == strings.ToLower(k) || strings.HasSuffix(n, "."+strings.ToLower(k))
			}); i >= 0 {
				return i
			}
		}
		return -1
	}
	at, what, pod, box := column(timeFields), column(textFields), column(podFields), column(boxFields)
	if what < 0 {
		return nil
	}
	for {
		row, err := r.Read()
		if err != nil {
			return all
		}
		cell := func(i int) string {
			if i < 0 || i >= len(row) {
				return ""
			}
			if i == what && i == len(names)-1 { // a line may have what tells cells apart
				return strings.Join(row[i:], string(r.Comma))
			}
			return row[i]
		}
		one, _ := record{
			pod:       strings.Map(plainRune, cell(pod)),
			container: strings.Map(plainRune, cell(box)),
		}.with(
			cell(at),
			cell(what),
		)
		all = append(all, one)
	}
}

// timedRow matches a row of CSV without names of columns: a time, and a text that is no part of a time.
var timedRow = regexp.MustCompile(
	`^"?[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{8}(?:\.[0-9]+)?(?:Z|[-+][0-9:]+)?"?,(?:[^0-9]|[0-9]{1,2}[^0-9]|[0-9]{4})`,
)

// jsonTexts are the fields in which collectors of logs keep a line. A program that logs in JSON has its own message in
// others.
var jsonTexts = []string{"log", "MESSAGE", "message", "textPayload", "@message"}

// within takes the lines out of records that are themselves JSON of a collector. They stay as they are unless all are.
func within(all []record) []record {
	out := make([]record, 0, len(all))
	for _, r := range all {
		if strings.TrimSpace(r.text) == "" {
			continue
		}
		inner, ok := collected([]byte(r.text), r)
		if !ok {
			return all
		}
		out = append(out, inner...)
	}
	return out
}

// collected reads one value of JSON as a collector's record, or takes texts with stacks out of it.
func collected(text []byte, from record) (out []record, ok bool) {
	if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '{' {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v map[string]any
	if d.Decode(&v) != nil {
		return nil, false
	}
	if slices.ContainsFunc(jsonTexts, func(name string) bool { _, is := v[name].(string); return is }) {
		r, _ := recordOf(v, from)
		if r.at.IsZero() {
			r.at = from.at
		}
		return []record{r}, true
	}
	withStacks(v, &out)
	return out, len(out) > 0
}

// tagLine matches a line in which a collector has put a tag, and a time, before a record of JSON.
var tagLine = regexp.MustCompile(`^[^{\n]{1,200}(?:\{\}\], )?(\{"(?:log|message|MESSAGE)": ?".*\})\]?\r?\n?$`)

// fromTagged returns the records in lines that all have a tag before them, as fluentd and Fluent Bit print them; none if
// a line has none.
func fromTagged(text []byte) (all []record) {
	if !bytes.Contains(text, []byte("\"}")) {
		return nil
	}
	for line := range bytes.Lines(text) {
		m := tagLine.FindSubmatch(line)
		if m == nil {
			return nil
		}
		inner, ok := collected(m[1], record{})
		if !ok {
			return nil
		}
		all = append(all, inner...)
	}
	return all
}
