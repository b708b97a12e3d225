package redact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
)

// Result says what was taken out of a run, and what is left in it.
type Result struct {
	From       string // SHA-256 of the original's index.json
	Trials     int
	Table      *Table
	Verdict    judge.Verdict
	Lines      int                      // of logs that were looked at
	TakenLines int                      // of these, lines whose text was taken out
	Checks     map[bundle.Kind][]string // checks that need every line of a kind of log
	Stacks     int                      // dumps and profiles that stay, with the names of functions

	taken map[bundle.Kind]Taken
}

// Taken is what was taken out of one kind of artifact.
type Taken struct {
	Files int
	Bytes int64
}

func (r *Result) takeOut(a bundle.Artifact) {
	t := r.taken[a.Kind]
	t.Files, t.Bytes = t.Files+1, t.Bytes+a.Size
	r.taken[a.Kind] = t
}

// TakenOut says in one line each what was taken out.
func (r *Result) TakenOut() (out []string) {
	for _, kind := range slices.Sorted(maps.Keys(r.taken)) {
		t := r.taken[kind]
		out = append(
			out,
			fmt.Sprintf(
				"%d files of %s, %d bytes, which judging doesn't read",
				t.Files,
				kind,
				t.Bytes,
			),
		)
	}
	if r.TakenLines > 0 {
		out = append(
			out,
			fmt.Sprintf(
				"the text of %d of %d lines of logs, which no check asks for",
				r.TakenLines,
				r.Lines,
			),
		)
	}
	return append(
		out,
		fmt.Sprintf(
			"%d names, values and addresses, each replaced by the same stand-in in all files",
			r.Table.Mapped(),
		),
	)
}

// Left says in one line each what is left that may tell something.
func (r *Result) Left() (out []string) {
	if r.Stacks > 0 {
		out = append(
			out,
			fmt.Sprintf(
				"the names of functions and of source files, in %d goroutine dumps and profiles; --word takes out words of them",
				r.Stacks,
			),
		)
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Checks)) {
		if by := r.Checks[kind]; len(by) > 0 {
			out = append(
				out,
				fmt.Sprintf(
					"every line of the artifacts of the kind %s, with its names replaced, which %s may need",
					kind,
					strings.Join(by, ", "),
				),
			)
		}
	}
	if names := r.Table.Needed(); len(names) > 0 {
		out = append(
			out,
			"names that the plan has, so that checks may refer to them: "+strings.Join(
				names,
				", ",
			),
		)
	}
	return append(
		out,
		"the plan, all times, versions, digests and figures, and how each arm was built, with the hash of a candidate's commit",
	)
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// union appends to all the elements of more that it doesn't have yet.
func union(all, more []string) []string {
	for _, s := range more {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
