package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// BuiltInList holds the checks that relapse makes of every arm of every scenario.
const BuiltInList = "built-in"

// The checks in BuiltInList. They ask whether the binary that was built is the one that runs, whether it was one
// process, and whether it got Ready where another arm did.
const (
	BuiltInBinary  = "binary"
	BuiltInProcess = "process"
	BuiltInReady   = "ready"
)

// The parts of the common health. The plan adds them to every trial's HealedList as built-in/stuck, built-in/heap and
// built-in/cpu.
const (
	HealthStuck = "stuck"
	HealthHeap  = "heap"
	HealthCPU   = "cpu"
)

// healthParts lists all parts of the common health.
var healthParts = []string{HealthStuck, HealthHeap, HealthCPU}

// The answers that a Ground can expect.
const (
	IsMet     = "met"
	IsNotMet  = "notMet"
	IsUnknown = "unknown"
)

// Ground is one check and the answer that it must give for a candidate's right outcome.
type Ground struct {
	Check string `json:"check" jsonschema:"the name of a check of the scenario, or LIST/NAME if several lists have a check of that name, or one of built-in/binary, built-in/process, built-in/ready, built-in/stuck, built-in/heap, built-in/cpu"`
	Is    string `json:"is" jsonschema:"the answer that the check must give: met, notMet or unknown"`
	// Sometimes is for a check that fails along with others, but only in some trials.
	Sometimes bool `json:"sometimes,omitempty" jsonschema:"true if the check may also give another answer; then other checks have to decide; the default is false"`

	List string `json:"-"` // the list that holds the check: SteadyList and so on
	Name string `json:"-"` // the check's name without its list
	// pairs are the pairs in which the check is made; nil means all pairs.
	pairs []string
	// Narrow says that only some providers make the check.
	Narrow bool `json:"-"`
}

// AskedIn reports whether the check is made in a pair.
func (g Ground) AskedIn(pair string) bool { return len(g.pairs) == 0 || slices.Contains(g.pairs, pair) }

// String returns the check with its answer: "pod-runs is not met".
func (g Ground) String() string {
	is := g.Is
	if is == IsNotMet {
		is = "not met"
	}
	if g.Sometimes {
		is = "sometimes " + is
	}
	return g.Check + " is " + is
}

// Grounds lists the checks and answers that together make a candidate's outcome right. A file may give a single ground
// without the list.
type Grounds []Ground

// UnmarshalJSON reads one ground or a list of them.
func (g *Grounds) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")) {
		return json.Unmarshal(b, (*[]Ground)(g))
	}
	*g = make(Grounds, 1)
	return json.Unmarshal(b, &(*g)[0])
}

// groundsSchema returns the schema of a field that holds Grounds, with doc as its description.
func groundsSchema(doc string) (*jsonschema.Schema, error) {
	one, err := jsonschema.For[Ground](options())
	if err != nil {
		return nil, fmt.Errorf("making the schema of a ground: %w", err)
	}
	one.Properties["check"].MinLength = new(1)
	one.Properties["is"].Enum = []any{IsMet, IsNotMet, IsUnknown}
	return &jsonschema.Schema{
		Description: doc,
		If:          &jsonschema.Schema{Type: "array"},
		Then:        &jsonschema.Schema{MinItems: new(1), Items: one},
		Else:        one,
	}, nil
}

// asked is a check that a Ground can name because it decides something.
type asked struct {
	list, name       string
	pairs, providers []string
}

// asks returns all checks that decide something, including the alternatives of groups.
func (s *Scenario) asks() []asked {
	var out []asked
	var walk func(string, []Check, asked)
	walk = func(list string, checks []Check, in asked) {
		for _, c := range checks {
			a := asked{list, c.Name, in.pairs, in.providers}
			if len(c.Pairs) > 0 {
				a.pairs = c.Pairs
			}
			if len(c.Providers) > 0 {
				a.providers = c.Providers
			}
			out = append(out, a)
			walk(list, c.AnyOf, a)
		}
	}
	for _, l := range s.Spec.CheckLists() {
		if l.Name != InformationList {
			walk(l.Name, *l.Checks, asked{})
		}
	}
	for _, name := range append([]string{BuiltInBinary, BuiltInProcess, BuiltInReady}, healthParts...) {
		left := slices.ContainsFunc(
			s.Spec.Health.Without,
			func(o Omission) bool { return o.Part == name },
		)
		if !left {
			out = append(out, asked{list: BuiltInList, name: name})
		}
	}
	return out
}

// names returns each name by which a Ground may refer to a check, once.
func (s *Scenario) names() []string {
	all := s.asks()
	var out []string
	for _, a := range all {
		name := a.name
		if a.list == BuiltInList || slices.ContainsFunc(all,
			func(o asked) bool { return o.name == name && o.list != a.list && o.list != BuiltInList }) {
			name = a.list + "/" + name
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// find fills in the ground's list and name, and the pairs in which its check is made. The error says which names are
// known.
func (g *Ground) find(s *Scenario) error {
	list, name, given := strings.Cut(g.Check, "/")
	if !given {
		name = g.Check
	}
	everywhere := false
	for _, a := range s.asks() {
		if a.name != name || given && a.list != list || !given && a.list == BuiltInList {
			continue
		}
		if g.List != "" && g.List != a.list {
			return fmt.Errorf("%q stands in %s and in %s (want %s/%s or %s/%s)", name, g.List, a.list, g.List, name,
				a.list, name)
		}
		g.List, g.Name = a.list, name
		g.Narrow = g.Narrow || len(a.providers) > 0
		everywhere = everywhere || len(a.pairs) == 0
		g.pairs = append(g.pairs, a.pairs...)
	}
	if g.List == "" {
		return fmt.Errorf(
			"%q is no check of %s that decides an outcome %s",
			g.Check,
			s.Metadata.Name,
			oneOf(g.Check, s.names()),
		)
	}
	if everywhere {
		g.pairs = nil
	}
	if g.List == BuiltInList && slices.Contains(healthParts, name) {
		g.List, g.Name = HealedList, BuiltInList+"/"+name
	}
	return nil
}

// because checks a candidate's grounds against the scenario. Each must name a check of the scenario, every pair must
// make at least one of the checks, and together they must be able to decide the outcome.
func (r *rules) because(k *CandidateFile) {
	if len(k.Spec.Because) == 0 || under(r.known, "spec", "because") {
		return
	}
	for i := range k.Spec.Because {
		g := &k.Spec.Because[i]
		if err := g.find(r.s); err != nil {
			r.violate(k.groundAt(i, "check"), "%s", err)
			return
		}
	}
	for _, p := range r.s.Spec.Pairs {
		if _, ok := k.base(p); ok && k.For(p.Name) && !slices.ContainsFunc(k.Spec.Because,
			func(g Ground) bool { return !g.Sometimes && g.AskedIn(p.Name) }) {
			r.add(
				"spec.because",
				"nothing decides in pair %s (want a check that it asks, without sometimes)",
				p.Name,
			)
		}
	}
	for _, want := range mustHold[k.Spec.Right] {
		holds, always := false, false // a check that decides in some trials only leaves the others without one
		for _, g := range k.Spec.Because {
			holds = holds || want.holds(g)
			always = always || want.holds(g) && !g.Sometimes
		}
		switch {
		case !holds:
			r.add("spec.because", "%s can't rest on this (want %s)", k.Spec.Right, want.says)
		case !always:
			r.add(
				"spec.because",
				"%s can't rest on this (want %s, without sometimes)",
				k.Spec.Right,
				want.says,
			)
		}
	}
}

// groundAt returns the path of a field of the i-th ground in the candidate's file.
func (k *CandidateFile) groundAt(i int, field string) []string {
	if k.oneGround {
		return []string{"spec", "because", field}
	}
	return []string{"spec", "because", fmt.Sprint(i), field}
}

// mustHold lists, for each outcome, the grounds without which it is impossible.
var mustHold = map[string][]struct {
	says  string
	holds func(Ground) bool
}{
	"Reproduced": {
		{"a check of signature that is met", func(g Ground) bool { return g.List == SignatureList && g.Is == IsMet }},
	},
	"NotReproduced": {
		{"a check of exposure that is met", func(g Ground) bool { return g.List == ExposureList && g.Is == IsMet }},
		{"a check of healed that is met", func(g Ground) bool { return g.List == HealedList && g.Is == IsMet }},
	},
	"Broken": {
		{"a check of healed, built-in/process or built-in/ready that is notMet", func(g Ground) bool {
			return g.Is == IsNotMet && (g.List == HealedList || g.List == BuiltInList && g.Name != BuiltInBinary)
		}},
	},
	"Inconclusive": {
		{"a check that is notMet or unknown", func(g Ground) bool { return g.Is != IsMet }},
	},
}
