package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// These limits protect the parser, which needs time quadratic in the nesting: a few hundred kilobytes of brackets would
// keep it busy for minutes. A scenario of a thousand lines has 50 KiB and five levels.
const (
	maxBytes     = 256 << 10
	maxNesting   = 64
	maxStructure = 256 // colons, dashes and question marks on one line
)

// position is the line and column where a node stands; both count from 1.
type position struct{ line, column int }

// document is a YAML file as plain JSON values (map[string]any, []any, string, bool, int64, uint64, float64, nil), with
// the position of each. The function key makes the keys of both position maps from paths.
type document struct {
	file   string
	value  any
	values map[string]position // of each value
	keys   map[string]position // of the key that introduces it, for members of mappings
	found  Violations

	moved    map[string][]string // original path of each value whose list index changed because others were left out
	places   map[string][]string // path in the file of each value that expand put elsewhere
	derived  map[string]bool     // whether the file doesn't have the value, because expand derived it
	follows  map[string][]string // path of each value that expand took over from elsewhere, and where from
	settings bool                // whether Override applied settings to it
	lost     [][]string          // paths whose value couldn't be read; complaints about nil there only repeat that
	beside   *folder             // the files beside the scenario
}

// key returns path as a map key. The steps of a path are field names and list indexes.
func key(path []string) string { return strings.Join(path, "\x00") }

// read parses text as a YAML document; kind is what violations call it. If the document's value is nil, found holds
// every violation that could be found in the text.
func read(file, kind string, text []byte) (d *document) {
	d = &document{file: file, values: map[string]position{}, keys: map[string]position{}}
	defer func() {
		// The parser may panic on broken text: that is a violation of the text, not a reason to crash.
		if r := recover(); r != nil {
			d.value = nil
			d.add(position{1, 1}, nil, "is not YAML that can be parsed")
		}
	}()
	if len(text) > maxBytes {
		d.add(position{1, 1}, nil, "is %d bytes long (want at most %d)", len(text), maxBytes)
		return d
	}
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	if at, wrong := misencoded(text); wrong != "" {
		d.add(at, nil, "%s", wrong)
		return d
	}
	tokens := lexer.Tokenize(string(text))
	if at, ok := tooDeep(tokens); ok {
		d.add(at, nil, "is nested too deeply (want at most %d levels)", maxNesting)
		return d
	}
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		at, message := position{1, 1}, err.Error()
		var syntax *yaml.SyntaxError
		if errors.As(err, &syntax) {
			message = syntax.Message
			if syntax.Token != nil && syntax.Token.Position != nil {
				at = positionOfToken(syntax.Token)
			}
		}
		d.add(at, nil, "is not YAML: %s", explained(message))
		return d
	}
	bodies := slices.DeleteFunc(
		slices.Clone(f.Docs),
		func(n *ast.DocumentNode) bool { return n.Body == nil },
	)
	if len(bodies) == 0 {
		d.add(position{1, 1}, nil, "is empty (want a %s)", kind)
		return d
	}
	for _, extra := range bodies[1:] {
		d.add(start(extra.Body), nil, "is a second document (want one %s a file)", kind)
	}
	d.value = d.convert(bodies[0].Body, nil)
	return d
}

func tooDeep(tokens token.Tokens) (position, bool) {
	depth, line, structure := 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType, token.AnchorType, token.TagType:
			if t.Position.Line != line {
				line, structure = t.Position.Line, 0
			}
			structure++
		}
		if depth > maxNesting || structure > maxStructure {
			return positionOfToken(t), true
		}
	}
	return position{}, false
}

func positionOfToken(t *token.Token) position { return position{t.Position.Line, t.Position.Column} }

func (d *document) add(at position, path []string, format string, args ...any) {
	d.found = append(d.found, Violation{
		File: d.file, Line: at.line, Column: at.column, Path: dotted(path), Message: fmt.Sprintf(format, args...),
	})
}

// addLost adds a violation and marks the value at path as unknown because of it.
func (d *document) addLost(at position, path []string, format string, args ...any) {
	d.add(at, path, format, args...)
	d.lost = append(d.lost, path)
}

// echoes reports whether a complaint about path only repeats that a value there is unknown.
func (d *document) echoes(path []string) bool {
	return slices.ContainsFunc(d.lost, func(l []string) bool {
		return len(l) <= len(path) &&
			slices.Equal(l, path[:len(l)])
	})
}

// convert turns a YAML node into plain values and records their positions.
func (d *document) convert(n ast.Node, path []string) any {
	if len(path) > maxNesting {
		d.add(
			positionOfToken(n.GetToken()),
			path[:3],
			"is nested too deeply (want at most %d levels)",
			maxNesting,
		)
		return nil
	}
	d.values[key(path)] = start(n)
	switch n := n.(type) {
	case *ast.MappingNode:
		return d.mapping(n.Values, path)
	case *ast.MappingValueNode:
		return d.mapping([]*ast.MappingValueNode{n}, path)
	case *ast.SequenceNode:
		out := make([]any, 0, len(n.Values))
		for i, v := range n.Values {
			out = append(out, d.convert(v, append(slices.Clip(path), strconv.Itoa(i))))
		}
		return out
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.StringNode:
		return n.Value
	case *ast.FloatNode:
		if math.IsInf(n.Value, 0) || math.IsNaN(n.Value) {
			d.addLost(start(n), path, "is not a number that can be written down")
			return nil
		}
		return n.Value
	case *ast.IntegerNode:
		// In an object of Kubernetes' it is what kubectl takes it for: defaultMode: 0644.
		if text := n.GetToken().Value; octal.MatchString(text) && !slices.Contains(path, "manifests") {
			d.addLost(start(n), path, "%s may be read as an octal number (want it without zeros in front, or in quotes)", text)
			return nil
		}
		return n.GetValue()
	case *ast.BoolNode, *ast.NullNode:
		return n.(ast.ScalarNode).GetValue()
	case *ast.AnchorNode:
		d.add(
			start(n),
			path,
			"has the anchor &%s (want the value alone: nothing repeats it)",
			n.Name.GetToken().Value,
		)
		return d.convert(n.Value, path)
	case *ast.AliasNode:
		d.addLost(
			start(n),
			path,
			"is the alias *%s (want the value itself; a check refers to another one by check: NAME, "+
				"a pair by like: NAME)",
			n.Value.GetToken().Value,
		)
	case *ast.TagNode:
		d.addLost(start(n), path, "uses the tag %s (want a plain value)", n.Start.Value)
	default:
		d.addLost(start(n), path, "is a %s (want a mapping, a list or a scalar)", n.Type())
	}
	return nil
}

// start returns the position where a reader sees a node begin. The parser's own token of a block mapping is its first
// colon.
func start(n ast.Node) position {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return positionOfToken(n.Values[0].Key.GetToken())
		}
	case *ast.MappingValueNode:
		return positionOfToken(n.Key.GetToken())
	}
	return positionOfToken(n.GetToken())
}

func (d *document) mapping(values []*ast.MappingValueNode, path []string) any {
	out := map[string]any{}
	for _, mv := range values {
		at := positionOfToken(mv.Key.GetToken())
		name, ok := mv.Key.(*ast.StringNode)
		if !ok {
			if mv.Key.IsMergeKey() {
				d.addLost(at, path, "has a merge key (want the fields themselves)")
			} else {
				d.addLost(
					at,
					path,
					"has the key %s, which is no plain string (want quotes around it)",
					mv.Key.String(),
				)
			}
			continue
		}
		member := append(slices.Clip(path), name.Value)
		if first, dup := d.keys[key(member)]; dup {
			d.add(at, member, "stands here a second time (first at line %d)", first.line)
			continue
		}
		d.keys[key(member)] = at
		out[name.Value] = d.convert(mv.Value, member)
	}
	return out
}

// positionOf returns the best position for a complaint about path: of the value if it is a scalar, of the key if it is
// a collection, and otherwise of the closest enclosing value that has a position.
func (d *document) positionOf(path []string) position {
	for {
		k, keyed := d.keys[key(path)]
		v, valued := d.values[key(path)]
		switch {
		case valued && (!keyed || scalar(lookup(d.value, path))):
			return v
		case keyed:
			return k
		case len(path) == 0:
			return position{1, 1}
		}
		path = path[:len(path)-1]
	}
}

// written returns path as it was in the text, before members were left out of lists and short forms were expanded.
func (d *document) written(path []string) []string {
	for _, moves := range []map[string][]string{d.moved, d.places} {
		for i := len(path); i > 0; i-- {
			if old, ok := moves[key(path[:i])]; ok {
				path = slices.Concat(old, path[i:])
				break
			}
		}
	}
	return path
}

func scalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// lookup follows path from v and returns the value there, or nil if there is none.
func lookup(v any, path []string) any {
	for _, step := range path {
		switch t := v.(type) {
		case map[string]any:
			v = t[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(t) {
				return nil
			}
			v = t[i]
		default:
			return nil
		}
	}
	return v
}

// dotted writes a path for people: spec.faults[0].spec.
func dotted(path []string) string {
	var b strings.Builder
	for _, step := range path {
		if _, err := strconv.Atoi(step); err == nil {
			b.WriteString("[" + step + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(step)
	}
	return b.String()
}
