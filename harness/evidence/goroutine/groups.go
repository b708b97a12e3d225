package goroutine

import (
	"bytes"
	"maps"
	"strconv"
	"strings"
	"time"
)

// groups collects goroutines by their key.
//
// A key is the normalised text of a goroutine: the state, then for each frame its function and its file:line, and
// last an empty line with the creator and its file:line, each ended by a newline, which none of them can contain. Map
// look-ups by string(key) don't allocate and compare the whole key, so that two different stacks never fall together.
type groups struct {
	list  []Group
	index map[string]int
	raw   [][]byte // per group: the labels' text as last seen, to skip parsing what is unchanged
}

// member is what one goroutine, or one counted record, adds to its group.
type member struct {
	count  int
	id     uint64
	hasID  bool // false in a Profile
	wait   time.Duration
	locked bool
	labels []byte // `"k":"v", …` as printed, without braces
}

func (gs *groups) add(key []byte, m member) {
	i, ok := gs.index[string(key)]
	if !ok {
		if gs.index == nil {
			gs.index = make(map[string]int)
		}
		i = len(gs.list)
		k := string(key)
		gs.index[k] = i
		g := decodeKey(k)
		g.MinWait, g.MaxWait = m.wait, m.wait
		g.Labels = parseLabels(m.labels)
		gs.list = append(gs.list, g)
		gs.raw = append(gs.raw, bytes.Clone(m.labels))
	}
	g := &gs.list[i]
	g.Count += m.count
	if m.hasID {
		g.IDs = append(g.IDs, m.id)
	}
	g.MinWait, g.MaxWait = min(g.MinWait, m.wait), max(g.MaxWait, m.wait)
	if m.locked {
		g.Locked += m.count
	}
	if !bytes.Equal(gs.raw[i], m.labels) {
		gs.raw[i] = append(gs.raw[i][:0], m.labels...)
		g.keepCommon(parseLabels(m.labels))
	}
}

// keepCommon drops the labels that the other goroutine lacks or has with another value.
func (g *Group) keepCommon(other map[string]string) {
	maps.DeleteFunc(g.Labels, func(k, v string) bool {
		w, ok := other[k]
		return !ok || v != w
	})
	if len(g.Labels) == 0 {
		g.Labels = nil
	}
}

// decodeKey returns the group that a key stands for.
func decodeKey(key string) Group {
	state, rest, _ := strings.Cut(key, "\n")
	g := Group{State: state}
	for rest != "" {
		var name, at string
		name, rest, _ = strings.Cut(rest, "\n")
		creator := name == ""
		if creator {
			name, rest, _ = strings.Cut(rest, "\n")
		}
		at, rest, _ = strings.Cut(rest, "\n")
		file, line := splitLine(at)
		if creator {
			g.CreatedBy, g.CreatedAt = name, Frame{File: file, Line: line}
			continue
		}
		g.Frames = append(g.Frames, Frame{Func: name, File: file, Line: line})
	}
	return g
}

// splitLine splits `file:line`.
func splitLine(at string) (string, int) {
	i := strings.LastIndexByte(at, ':')
	if i < 0 {
		return at, 0
	}
	n, err := strconv.Atoi(at[i+1:])
	if err != nil {
		return at, 0
	}
	return at[:i], n
}

// parseLabels reads `"k":"v", "k2":"v2"`, with or without a space after the colon, and stops at anything else.
func parseLabels(text []byte) map[string]string {
	if len(text) == 0 {
		return nil
	}
	labels := make(map[string]string)
	s := string(text)
	for {
		k, rest, ok := cutQuoted(s)
		if !ok || !strings.HasPrefix(rest, ":") {
			break
		}
		v, rest, ok := cutQuoted(strings.TrimLeft(rest[1:], " "))
		if !ok {
			break
		}
		labels[k] = v
		if s, ok = strings.CutPrefix(rest, ", "); !ok {
			break
		}
	}
	if len(labels) == 0 {
		return nil
	}
	return labels
}

func cutQuoted(s string) (value, rest string, ok bool) {
	q, err := strconv.QuotedPrefix(s)
	if err != nil {
		return "", s, false
	}
	value, err = strconv.Unquote(q)
	return value, s[len(q):], err == nil
}
