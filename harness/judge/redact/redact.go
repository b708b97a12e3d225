// Package redact makes a copy of a run that can be given away: without what judging doesn't read, and with stand-ins for
// names. The copy is judged like the original, or there is none. It says that it is redacted, and what it was made from.
package redact

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/verdict"
	"github.com/kube-relapse/relapse/harness/version"
)

// Run writes a redacted copy of the run in dir to the new directory to. words are replaced wherever they stand, the
// names of functions included. A copy that isn't judged like the original is an error, which names what differs.
func Run(dir, to string, words []string) (*Result, error) {
	was, err := judge.Run(dir)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(dir, bundle.PlanFile))
	if err != nil {
		return nil, err
	}
	out := &Result{
		Trials: len(was.Trials),
		Checks: map[bundle.Kind][]string{},
		taken:  map[bundle.Kind]Taken{},
	}
	if out.From, err = bundle.IndexSum(dir); err != nil {
		return nil, err
	}
	if out.Table, err = tableOf(raw, words); err != nil {
		return nil, err
	}
	bundles := make([]*bundle.Sealed, len(was.Trials))
	opened := make([]map[string]bool, len(was.Trials))
	for i, t := range was.Trials {
		if bundles[i], err = bundle.Open(filepath.Join(dir, filepath.FromSlash(t.Dir))); err != nil {
			return nil, err
		}
		if opened[i], err = readByJudge(bundles[i], t.Plan); err != nil {
			return nil, err
		}
		if err := out.Table.learnBundle(bundles[i], opened[i]); err != nil {
			return nil, err
		}
	}
	for _, l := range was.Index.Lost {
		out.Table.fromText(l.Why)
	}
	out.Table.Settle()
	planned, err := planWithout(out.Table, raw)
	if err == nil {
		planned, err = bundle.Redact(planned)
	}
	if err != nil {
		return nil, err
	}
	index := was.Index
	index.Trials = slices.Clone(index.Trials)
	index.Plan = sumOf(planned)
	index.Lost = slices.Clone(index.Lost)
	for i := range index.Lost { // what a cluster or a recorder said
		index.Lost[i].Why = out.Table.Text(index.Lost[i].Why)
	}
	index.Redacted = &bundle.Redacted{From: out.From, Relapse: version.Relapse()}
	for i, t := range was.Trials {
		c := &change{
			Table:  out.Table,
			opened: opened[i],
			lines:  wantedLines(t.Plan),
			plan:   index.Plan,
			from:   t.Manifest,
			out:    out,
		}
		at := filepath.Join(to, filepath.FromSlash(t.Dir))
		if err := bundles[i].Rewrite(at, c); err != nil {
			return nil, fmt.Errorf("redacting trial %s: %w", t.ID, err)
		}
		for kind, w := range c.lines {
			out.Checks[kind] = union(out.Checks[kind], w.by)
		}
		if index.Trial(t.ID).Manifest, err = bundle.ManifestSum(at); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(to, bundle.PlanFile), planned, 0o644), index.Write(to)); err != nil {
		return nil, err
	}
	out.Verdict, err = judge.Run(to)
	if err != nil {
		return nil, fmt.Errorf("judging what was redacted: %w", err)
	}
	return out, same(was, out.Verdict)
}

// tableOf returns a table in which the words of the plan stay, but not the names of the user's own files in it.
func tableOf(raw []byte, words []string) (*Table, error) {
	p, err := plan.Read(raw)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", bundle.PlanFile, err)
	}
	own := ownFiles(p)
	without := string(raw)
	for _, o := range own {
		without = strings.ReplaceAll(without, o.text, " ")
	}
	for _, w := range words {
		without = strings.ReplaceAll(without, w, " ")
	}
	texts, arms := []string{without}, map[string]bool{}
	for _, trial := range p.Trials {
		for _, a := range trial.Arms {
			if !arms[a.Name] {
				arms[a.Name] = true
				texts = append(texts, question.ExpandArm(without, a.Name)) // as checks and loads name objects
			}
		}
	}
	t := NewTable(texts...)
	for _, o := range own {
		t.Literal(o.text, o.as)
		if base := filepath.Base(o.text); base != o.text && !slices.Contains(public, base) && len(base) > 3 {
			t.Literal(base, "file-")
		}
	}
	for _, w := range words {
		t.Literal(w, "word")
	}
	return t, nil
}

// own is a name of the user's own in a plan, with what its stand-in begins with.
type own struct{ text, as string }

// ownFiles returns the names in a plan that are not the scenario's: where a candidate came from, and where the
// scenario's file is, if that is an absolute path.
func ownFiles(p *plan.Plan) (out []own) {
	path := func(text string) {
		if filepath.IsAbs(text) {
			out = append(out, own{text, "/redacted/file-"})
		} else if text != "" {
			out = append(out, own{text, "file-"})
		}
	}
	if filepath.IsAbs(p.Source) {
		path(p.Source)
	}
	for _, t := range p.Trials {
		for _, a := range t.Arms {
			path(a.Source.Dir)
			path(a.Source.Binary)
			path(a.Source.Patch)
			for _, text := range []string{a.Source.Image, a.Source.NodeImage, a.Source.Fork, a.Source.Ref} {
				if text != "" {
					out = append(out, own{text, "source-"})
				}
			}
			for _, b := range a.Source.Before {
				path(b.Dir)
				path(b.Binary)
			}
		}
	}
	return out
}

// traced is a view that notes which artifacts are opened.
type traced struct {
	bundle.View
	opened map[string]bool
}

// Open notes an artifact and opens it.
func (v traced) Open(a bundle.Artifact) (io.ReadCloser, error) {
	v.opened[a.Path] = true
	return v.View.Open(a)
}

// Remember notes an artifact and reads it.
func (v traced) Remember(
	a bundle.Artifact,
	as string,
	grow func(any, io.Reader) (any, error),
) (any, error) {
	v.opened[a.Path] = true
	return v.View.Remember(a, as, grow)
}

// readByJudge returns the paths of the artifacts that judging a trial opens.
func readByJudge(b *bundle.Sealed, t plan.Trial) (map[string]bool, error) {
	v := traced{b, map[string]bool{}}
	_, err := verdict.Judge(v, t)
	b.Forget()
	return v.opened, err
}

// learnBundle has the table learn the names in a bundle.
func (t *Table) learnBundle(b *bundle.Sealed, opened map[string]bool) error {
	t.Mark(b.World().Run)
	for _, a := range b.Artifacts(bundle.Query{}) {
		t.Name(a.Node)
		if !opened[a.Path] || a.Missing || a.Path == "" {
			continue
		}
		r, err := b.Open(a)
		if err != nil {
			return err
		}
		err = t.learn(a, r)
		r.Close()
		if err != nil {
			return fmt.Errorf("reading %s: %w", a.Path, err)
		}
	}
	for _, e := range b.Timeline() {
		t.fromText(e.Message)
	}
	return nil
}

// same returns an error if two verdicts differ in an answer. Sentences may differ.
func same(was, is judge.Verdict) error {
	before, after := answers(was), answers(is)
	for i := range max(len(before), len(after)) {
		at := func(all []string) string {
			if i < len(all) {
				return all[i]
			}
			return "nothing"
		}
		if at(before) != at(after) {
			return fmt.Errorf(
				"what was redacted is judged differently: %s, and was %s",
				at(after),
				at(before),
			)
		}
	}
	return nil
}

// answers are all answers of a verdict, without the words that they are told in.
func answers(v judge.Verdict) []string {
	out := []string{fmt.Sprintf("the verdict is %s (exit %d)", v.Verdict, v.ExitCode)}
	for _, a := range v.Arms {
		out = append(out, fmt.Sprintf("arm %s of trial %s is %s", a.Name, a.Trial, a.Outcome))
		for _, part := range [][]check.Finding{a.Identity, a.Steady, a.Baseline, a.Exposure, a.Signature, a.Healed, a.Info} {
			out = append(out, told(a, part)...)
		}
	}
	return out
}

func told(a verdict.Arm, all []check.Finding) (out []string) {
	for _, f := range all {
		why := ""
		if f.Code != "" {
			why = " (" + string(f.Code) + ")"
		}
		out = append(out, fmt.Sprintf("the check %s of arm %s in trial %s is %s%s", f.Name, a.Name, a.Trial, f.Met, why))
		out = append(out, told(a, f.AnyOf)...)
	}
	return out
}
