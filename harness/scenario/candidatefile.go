package scenario

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// CandidateKind is the kind of the files in CandidatesDir, a folder next to the scenario's file.
const (
	CandidateKind = "Candidate"
	CandidatesDir = "candidates"
)

// Oracle holds the scenario's defaults for running its candidates: mostly small constants, which keep a trial short.
type Oracle struct {
	Pair string            `json:"pair,omitempty" jsonschema:"the pair whose arms are the controls; the default is the first whose arms differ in mutations, and else the scenario's default pair"`
	Set  map[string]Scalar `json:"set,omitempty" jsonschema:"settings of the trials, as --set takes them: name -> value"`
	// Beside limits how many candidates share a trial. It is for incidents that keep a core busy in each arm that shows
	// them.
	Beside int `json:"beside,omitzero" jsonschema:"the most candidates that share a trial; the default is as many as this machine's cores and memory allow"`
}

// CandidateFile is a candidate whose right outcome is known: a change to the source of one of the scenario's arms. It
// tests the scenario's own checks.
type CandidateFile struct {
	APIVersion string        `json:"apiVersion" jsonschema:"relapse.dev/v1alpha1"`
	Kind       string        `json:"kind" jsonschema:"Candidate"`
	Metadata   Metadata      `json:"metadata"`
	Spec       CandidateSpec `json:"spec"`

	File string `json:"-"` // the path it was read from

	oneGround bool // whether because is a single ground in the file, without a list
}

// CandidateSpec says what a candidate changes, and which outcome is right for it.
type CandidateSpec struct {
	Doc   string `json:"doc" jsonschema:"what the candidate changes, in one line"`
	Right string `json:"right" jsonschema:"the right outcome of the candidate's arm: Reproduced, NotReproduced, Broken or Inconclusive"`
	Why   string `json:"why" jsonschema:"why that is the right answer"`
	// Because lists the checks that bring about the right outcome. Without these answers the outcome would be another
	// one, and no other check may be the reason for it.
	Because Grounds  `json:"because"`
	Base    string   `json:"base" jsonschema:"the role of the arm that the candidate starts from, with that arm's source and mutations: vulnerable or fixed"`
	Pairs   []string `json:"pairs,omitempty" jsonschema:"the pairs that the candidate is made for; the default is all pairs"`
	Alone   bool     `json:"alone,omitempty" jsonschema:"true if no other candidate may share the trial, because this candidate changes the fault for every arm; the default is false"`
	// Set overrides --set and the scenario's settings under oracle:.
	Set       map[string]Scalar `json:"set,omitempty" jsonschema:"settings that the candidate needs to give its right answer: name -> value; they override --set and oracle.set, and no other candidate shares the trial"`
	Mutations []Mutation        `json:"mutations,omitempty" jsonschema:"semantic rewrites of the source, applied after the mutations of the arm that the candidate starts from"`
}

// rights lists the outcomes that can be right for a candidate.
var rights = []string{"Reproduced", "NotReproduced", "Broken", "Inconclusive"}

// knownPattern matches a candidate's name, which has to be short enough to be part of a node's name.
const knownPattern = `^[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?$`

// Candidates reads the candidate files in CandidatesDir, next to the scenario's file, sorted by name. Mistakes in those
// files are returned as Violations.
func (s *Scenario) Candidates() ([]CandidateFile, error) {
	if s.Origin == nil {
		return nil, fmt.Errorf(
			"scenario %s was made in memory: candidates lie beside a scenario's file",
			s.Metadata.Name,
		)
	}
	dir := filepath.Join(filepath.Dir(s.Origin.File), CandidatesDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the candidates of %s: %w", s.Metadata.Name, err)
	}
	var out []CandidateFile
	var wrong Violations
	for _, e := range entries {
		k, err := s.Candidate(filepath.Join(dir, e.Name()))
		var vs Violations
		switch {
		case errors.As(err, &vs):
			wrong = append(wrong, vs...)
		case err != nil:
			return nil, err
		default:
			out = append(out, *k)
		}
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return out, nil
}

// Candidate reads one candidate file of the scenario. Mistakes in the file are returned as Violations.
func (s *Scenario) Candidate(path string) (*CandidateFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading candidate %s: %w", path, err)
	}
	d := read(path, "candidate", text)
	if d.value == nil {
		if len(d.found) == 0 {
			d.add(position{1, 1}, nil, "is empty (want a candidate)")
		}
		return nil, d.found.sorted()
	}
	d.expandCandidate()
	v, err := compiledKnown()
	if err != nil {
		return nil, err
	}
	tree, err := numbered(d.value)
	if err != nil {
		return nil, fmt.Errorf("converting %s to JSON: %w", path, err)
	}
	k := &CandidateFile{File: path}
	_, k.oneGround = lookup(tree, []string{"spec", "because"}).(map[string]any)
	if err := d.into(k, v, tree, func(known []complaint) []complaint { return k.related(s, known) }); err != nil {
		return nil, err
	}
	if len(d.found) > 0 {
		return nil, d.found.sorted()
	}
	return k, nil
}

// related applies the rules that the schema can't express.
func (k *CandidateFile) related(s *Scenario, known []complaint) []complaint {
	r := &rules{s: s, known: known}
	if base, ok := strings.CutSuffix(filepath.Base(k.File), ".yaml"); !ok || base != k.Metadata.Name {
		r.add("metadata.name", "%q is not the file's name (want %s)", k.Metadata.Name,
			strings.TrimSuffix(filepath.Base(k.File), filepath.Ext(k.File)))
	}
	r.ownName("metadata.name", k.Metadata.Name)
	pairs := each(s.Spec.Pairs, func(p Pair) string { return p.Name })
	for i, name := range k.Spec.Pairs {
		if !slices.Contains(pairs, name) {
			r.add(
				fmt.Sprintf("spec.pairs.%d", i),
				"%q is no pair of %s %s",
				name,
				s.Metadata.Name,
				oneOf(name, pairs),
			)
		}
	}
	if asItIs := map[string]string{Vulnerable: "Reproduced",
		Fixed: "NotReproduced"}[k.Spec.Base]; len(k.Spec.Mutations) == 0 && k.Spec.Right != asItIs {
		r.add(
			"spec.right",
			"%s can't be right for the %s arm as it is (want mutations, or %s)",
			k.Spec.Right,
			k.Spec.Base,
			asItIs,
		)
	}
	r.because(k)
	r.settings([]string{"spec", "set"}, k.Spec.Set)
	for _, p := range s.Spec.Pairs {
		if arm, ok := k.base(p); ok && k.For(p.Name) {
			r.mutations("spec.mutations", k.Spec.Mutations, arm.Source.Version)
		}
	}
	return r.out
}

// IsAlone reports whether no other candidate may share the candidate's trial.
func (k CandidateFile) IsAlone() bool { return k.Spec.Alone || len(k.Spec.Set) > 0 }

// For reports whether the candidate is made for a pair.
func (k CandidateFile) For(pair string) bool {
	return len(k.Spec.Pairs) == 0 || slices.Contains(k.Spec.Pairs, pair)
}

func (k CandidateFile) base(pair Pair) (Arm, bool) {
	i := slices.IndexFunc(pair.Arms, func(a Arm) bool { return a.Role == k.Spec.Base })
	if i < 0 {
		return Arm{}, false
	}
	return pair.Arms[i], true
}

// Arm returns the candidate as a further arm of pair. The error says that pair has no arm with the candidate's base
// role.
func (k CandidateFile) Arm(pair Pair) (Arm, error) {
	base, ok := k.base(pair)
	if !ok {
		return Arm{}, fmt.Errorf(
			"candidate %s starts from the %s arm, which pair %s doesn't have",
			k.Metadata.Name,
			k.Spec.Base,
			pair.Name,
		)
	}
	src := base.Source
	src.Mutations = slices.Concat(src.Mutations, k.Spec.Mutations)
	return Arm{Name: k.Metadata.Name, Role: Candidate, Source: src}, nil
}

// KnownSchema returns the JSON Schema of a candidate's file. The error names a mutation whose spec type can't be
// expressed.
func KnownSchema() (*jsonschema.Schema, error) {
	root, err := jsonschema.For[CandidateFile](options())
	if err != nil {
		return nil, fmt.Errorf("making the schema of a candidate: %w", err)
	}
	root.Schema, root.ID, root.Title = "https://json-schema.org/draft/2020-12/schema", strings.Replace(
		schemaID,
		"scenario",
		"candidate",
		1,
	), "relapse candidate"
	root.Defs = map[string]*jsonschema.Schema{}
	if err := addKinds(root.Defs, kinds.Mutation); err != nil {
		return nil, err
	}
	var version, kind any = APIVersion, CandidateKind
	root.Properties["apiVersion"].Const, root.Properties["kind"].Const = &version, &kind
	root.Properties["metadata"].Properties["name"].Pattern = knownPattern
	root.Defs[kinds.Mutation].Properties["sites"].Minimum = new(1.0)
	spec := root.Properties["spec"].Properties
	if spec["because"], err = groundsSchema("the checks by which its outcome is right, each with its answer"); err != nil {
		return nil, err
	}
	for _, r := range rights {
		spec["right"].Enum = append(spec["right"].Enum, r)
	}
	spec["base"].Enum = []any{Vulnerable, Fixed}
	spec["doc"].MinLength, spec["why"].MinLength = new(1), new(1)
	withoutNull(root)
	return root, nil
}

var compiledKnown = sync.OnceValues(
	func() (*validator, error) { return newValidator(KnownSchema) },
)

// oracle checks the scenario's defaults for running candidates.
func (r *rules) oracle() {
	o := r.s.Spec.Oracle
	if o == nil {
		return
	}
	pairs := each(r.s.Spec.Pairs, func(p Pair) string { return p.Name })
	if o.Pair != "" && !slices.Contains(pairs, o.Pair) {
		r.add("spec.oracle.pair", "%q is no pair %s", o.Pair, oneOf(o.Pair, pairs))
	}
	if o.Beside < 0 {
		r.add("spec.oracle.beside", "it is %d (want at least 1)", o.Beside)
	}
	r.settings([]string{"spec", "oracle", "set"}, o.Set)
}

// settings checks a set of settings for the scenario. path is where the set stands in the file.
func (r *rules) settings(path []string, set map[string]Scalar) {
	fields, err := specFields()
	for name, v := range set {
		at := append(slices.Clone(path), name)
		first, _, _ := strings.Cut(name, ".")
		if i := slices.IndexFunc(r.s.Spec.Parameters, func(p Parameter) bool { return p.Name == name }); i >= 0 {
			if _, err := r.s.Spec.Parameters[i].value(string(v)); err != nil {
				r.violate(at, "%s", err)
			}
		} else if err == nil && !slices.Contains(fields, first) {
			r.about(at, "%s", unknownParameter(name, r.s.Spec.Parameters, fields))
		}
	}
}
