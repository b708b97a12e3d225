package goroutine

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// within returns the panic in the stack that one line contains, in a string of JSON or between quotes. The rest of the
// line is its message. It is nil if nothing panicked on that stack. unread says that a stack could not be read to its
// end.
func within(line string, at int) (r *Recovery, unread bool) {
	texts, rest := embedded(line, stackLike.MatchString)
	if len(texts) == 0 {
		return nil, true
	}
	for _, text := range texts {
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		i := slices.IndexFunc(lines, stackBegins.MatchString)
		if i < 0 {
			unread = true
			continue
		}
		prefix := stackBegins.FindStringSubmatch(lines[i])[1]
		g, cut := readStack(lines[i:stackEnd(lines, i+1, prefix)], prefix)
		unread = unread || cut
		if r == nil && panics(g) {
			message := strings.TrimSpace(rest + "\n" + before(lines[:i]))
			r = &Recovery{First: at, Message: message, Group: *g}
		}
	}
	return r, unread
}

// embedded returns the strings of a line, in JSON or between quotes, that are wanted, and the rest of the line.
func embedded(line string, wanted func(string) bool) (texts []string, rest string) {
	if strings.HasPrefix(line, "{") {
		var v any
		if json.Unmarshal([]byte(line), &v) != nil {
			return nil, ""
		}
		var others []string
		for _, s := range stringsOf("", v) {
			if wanted(s.text) {
				texts = append(texts, s.text)
			} else {
				others = append(others, s.name+"="+s.text)
			}
		}
		return texts, strings.Join(others, " ")
	}
	rest = quoted.ReplaceAllStringFunc(line, func(q string) string {
		text, err := strconv.Unquote(q)
		if err != nil || !wanted(text) {
			return q
		}
		texts = append(texts, text)
		return `""`
	})
	return texts, rest
}

type named struct{ name, text string }

// stringsOf returns the strings in a JSON value, each with the name of its field, in the order of the names.
func stringsOf(name string, v any) (all []named) {
	switch v := v.(type) {
	case string:
		return []named{{name, v}}
	case []any:
		for _, x := range v {
			all = append(all, stringsOf(name, x)...)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			all = append(all, stringsOf(k, v[k])...)
		}
	}
	return all
}
