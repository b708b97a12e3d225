package pasted

import (
	"bytes"
	"regexp"
	"strconv"
)

// ofChild matches a line that a program logs for another one that it has started, as k0s does: the line that the child has
// printed is the message, and the child's name a field.
var ofChild = regexp.MustCompile(
	`time="?([^"]+?)"? level=\w+ msg=("(?:[^"\\]|\\.)*"|\S*)(?: \S+=\S+)* component=([a-z][a-z0-9-]*)(?: \S+=\S+)* stream=\w+`,
)

// fromChildren returns the lines that a program has logged for its children, and its own between them; none if it has none.
func fromChildren(text []byte) (all []record) {
	if !bytes.Contains(text, []byte(" component=")) || !bytes.Contains(text, []byte(" stream=")) {
		return nil
	}
	found := false
	for line := range bytes.Lines(text) {
		m := ofChild.FindSubmatch(line)
		if m == nil {
			all = append(all, record{text: string(line)})
			continue
		}
		said := string(m[2])
		if s, err := strconv.Unquote(said); err == nil {
			said = s
		}
		found = true
		all = append(
			all,
			record{at: momentOf(string(m[1])), text: said, pod: "child", container: string(m[3])},
		)
	}
	if !found {
		return nil
	}
	return all
}
