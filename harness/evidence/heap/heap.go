// Package heap reads pprof heap profiles: how much memory is in use by whom. It is a pure function over io.Reader.
package heap

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// Profile is the memory that was in use at the last garbage collection before a heap profile was taken. `?gc=1` makes
// the process collect its garbage first. The runtime samples allocations (one in 512 KiB, unless told otherwise) and
// scales the samples up, so small numbers are coarse.
type Profile struct {
	// Bytes and Objects are the totals of what is in use.
	Bytes, Objects int64
	// Stacks are the places that allocated them, the one with most bytes first. No two have the same frames.
	Stacks []Stack
}

// Stack is a place that allocated memory, with the part of that memory that is in use.
type Stack struct {
	Bytes, Objects int64
	// Frames are the functions in full ("k8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection"),
	// the allocating one first, inlined ones too.
	Frames []string
}

// Read reads a heap profile, gzipped or not. A profile without inuse_space in bytes or without inuse_objects is an
// error that names the sample types it has: it isn't a heap profile.
func Read(r io.Reader) (*Profile, error) {
	raw, err := profile.Parse(r)
	if err != nil {
		return nil, fmt.Errorf("reading heap profile: %w", err)
	}
	space, count := -1, -1
	var has []string
	for i, t := range raw.SampleType {
		has = append(has, t.Type+"/"+t.Unit)
		switch {
		case t.Type == "inuse_space" && t.Unit == "bytes":
			space = i
		case t.Type == "inuse_objects":
			count = i
		}
	}
	if space < 0 || count < 0 {
		return nil, fmt.Errorf(
			"reading heap profile: its samples are %s; want inuse_space/bytes and "+
				"inuse_objects/count",
			strings.Join(has, ", "),
		)
	}
	p := &Profile{}
	index := map[string]int{}
	for _, s := range raw.Sample {
		bytes, objects := s.Value[space], s.Value[count]
		if bytes == 0 && objects == 0 { // allocated once, and free again
			continue
		}
		p.Bytes += bytes
		p.Objects += objects
		frames := framesOf(s)
		key := strings.Join(frames, "\n")
		i, ok := index[key]
		if !ok {
			i = len(p.Stacks)
			index[key] = i
			p.Stacks = append(p.Stacks, Stack{Frames: frames})
		}
		p.Stacks[i].Bytes += bytes
		p.Stacks[i].Objects += objects
	}
	slices.SortStableFunc(p.Stacks, func(a, b Stack) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return p, nil
}

// framesOf returns the functions of a sample. Code without a symbol is a "?".
func framesOf(s *profile.Sample) []string {
	var out []string
	for _, l := range s.Location {
		if len(l.Line) == 0 {
			out = append(out, "?")
		}
		for _, line := range l.Line {
			name := "?"
			if line.Function != nil && line.Function.Name != "" {
				name = line.Function.Name
			}
			out = append(out, name)
		}
	}
	return out
}

// Retained returns the stacks that have a frame whose function contains match, the one with most bytes first, and the
// sum of their bytes and objects in use. An empty match selects all of the heap.
func (p *Profile) Retained(match string) (bytes, objects int64, stacks []Stack) {
	for _, s := range p.Stacks {
		if match != "" && !slices.ContainsFunc(s.Frames, func(f string) bool { return strings.Contains(f, match) }) {
			continue
		}
		bytes += s.Bytes
		objects += s.Objects
		stacks = append(stacks, s)
	}
	return bytes, objects, stacks
}

// Retained reads a heap profile and returns how many bytes and objects are in use that were allocated under a function
// whose name contains match ("registry.(*Store).DeleteCollection"). It also returns the places that allocated them, the
// one with most bytes first.
func Retained(r io.Reader, match string) (bytes, objects int64, stacks []Stack, err error) {
	p, err := Read(r)
	if err != nil {
		return 0, 0, nil, err
	}
	bytes, objects, stacks = p.Retained(match)
	return bytes, objects, stacks, nil
}
