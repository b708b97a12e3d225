package export

import (
	"crypto/sha256"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/logs"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// creAbout is what is lost of every rule of CRE.
var creAbout = []string{
	"all rules: the source cre.log.COMPONENT is that component's log, and preq's data sources have to say where it is",
	"all rules: CRE's project gives out the numbers of its own rules; these have names, which preq takes and the schema of CRE's collection doesn't",
	"all rules: preq shows the versions that are affected, and doesn't ask for them",
}

const (
	stackWindow = 5 * time.Second // in which a runtime prints one stack
	longWindow  = time.Hour       // for what a sign asks for in whatever time
)

// condition is what one check asks of a log: lines like each of some patterns, so many of them within a window.
type condition struct {
	component string
	terms     []any
	lines     int // how many lines there have to be
	window    time.Duration
	wider     bool // whether more than the check's own lines meet it
}

// incident writes the rules of a sign: one that asks for all of its checks that a log can hold. A sign of alternatives has
// one for each.
func (t *translation) incident(s *scenario.Scenario, sign scenario.Sign) error {
	groups := [][]scenario.Check{sign.Checks}
	if len(sign.Checks) == 1 {
		groups = nil
		for _, c := range leaves(sign.Checks) {
			groups = append(groups, []scenario.Check{c})
		}
	}
	before := len(t.rules)
	for _, g := range groups {
		if err := t.conditions(s, sign, g, len(groups) > 1); err != nil {
			return err
		}
	}
	if len(t.rules) > before {
		t.said++
	}
	return nil
}

// conditions writes one rule, which asks for those of some checks together that a log can hold.
func (t *translation) conditions(
	s *scenario.Scenario,
	sign scenario.Sign,
	all []scenario.Check,
	named bool,
) error {
	var said []condition
	for _, c := range all {
		var one *condition
		if len(c.AnyOf) == 0 {
			k, err := kinds.Decode[check.Check](kinds.Check, c.Kind, c.Spec)
			if err != nil {
				return err
			}
			one = rule{t, s, sign, c.Name}.condition(k)
		}
		switch {
		case one == nil && len(c.AnyOf) > 0:
			t.recordLoss(s, sign.Name, "%s (alternatives) can't be said", c.Name)
		case one == nil:
			t.recordLoss(s, sign.Name, "%s (%s) can't be said", c.Name, c.Kind)
		case len(said) > 0 && said[0].component != one.component:
			t.recordLoss(s, sign.Name, "%s is of another log, and a rule reads one", c.Name)
		default:
			said = append(said, *one)
		}
	}
	if len(said) == 0 {
		return nil
	}
	name := sign.Name
	if named {
		name += "-" + all[0].Name
	}
	if len(said) < len(all) {
		t.recordLoss(
			s,
			sign.Name,
			"it wants %d checks together, and the rule asks for %d of them",
			len(all),
			len(said),
		)
	}
	if len(said) < len(all) || slices.ContainsFunc(said, func(c condition) bool { return c.wider }) {
		sign.Is = scenario.Suspicious // what is met more often decides less
	}
	if len(said) > 1 {
		t.recordLoss(s, sign.Name, "what its checks want has to be within %s", longWindow)
	}
	t.rules = append(t.rules, creRule(rule{t, s, sign, name}, said))
	return nil
}

// condition translates a check, nil if a log can't hold what it asks for.
func (r rule) condition(k check.Check) *condition {
	switch k := k.(type) {
	case *logs.LogCount:
		if k.AtMost != nil || k.AtLeast < 1 {
			return nil
		}
		return r.counted(k)
	case *logs.LogLine:
		if len(k.Exceeds) > 0 {
			r.recordLoss("the numbers in the line are not compared")
		}
		return &condition{
			component: r.s.Spec.Subject,
			terms:     []any{term(k.Pattern, k.AtLeast)},
			lines:     max(k.AtLeast, 1),
			window:    longWindow,
			wider:     len(k.Exceeds) > 0,
		}
	case *logs.Panicked:
		r.recordLoss(
			"the lines of the stack have to come within %s of the message, and which goroutine panicked is not told",
			stackWindow,
		)
		out := &condition{
			component: k.Component,
			terms:     []any{term(k.Message, 1)},
			lines:     1 + len(k.Frames),
			window:    stackWindow,
		}
		for _, f := range k.Frames {
			out.terms = append(out.terms, term(regexp.QuoteMeta(f), 1))
		}
		return out
	}
	return nil
}

func (r rule) counted(k *logs.LogCount) *condition {
	window := longWindow
	if d, err := time.ParseDuration(k.Within); err == nil {
		window = d
	} else if k.AtLeast > 1 {
		r.recordLoss("its %d lines have to be within %s", k.AtLeast, window)
	}
	together := strings.Contains(k.Pattern, "(?P<each>") && k.AtLeast > 1
	if together {
		r.recordLoss("lines about different things are counted together")
	}
	return &condition{
		component: k.Component,
		terms:     []any{term(k.Pattern, k.AtLeast)},
		lines:     k.AtLeast,
		window:    window,
		wider:     together,
	}
}

// term is a line that has to be there, so many times.
func term(pattern string, count int) object {
	out := object{"regex": "(?i)" + strings.TrimSpace(pattern)}
	if count > 1 {
		out["count"] = count
	}
	return out
}

// categories are CRE's own categories, by the kind of failure.
var categories = map[string]string{
	"crash":        "runtime-problem",
	"leak":         "memory-problem",
	"loop":         "infinite-loop-problem",
	"wrong-answer": "kubernetes-problem",
	"lost-work":    "kubernetes-problem",
	"stuck":        "stability-problem",
}

// creRule is a rule of CRE. preq wants a window exactly where there is more than one line to look for.
func creRule(r rule, said []condition) object {
	set, lines, window := object{"event": object{"source": "cre.log." + said[0].component}}, 0, time.Duration(0)
	var match []any
	for _, c := range said {
		match = append(match, c.terms...)
		lines += c.lines
		window = max(window, c.window)
	}
	if len(said) > 1 {
		window = longWindow
	}
	set["match"] = match
	if lines > 1 {
		set["window"] = window.String()
	}
	severity := 3 // low
	if r.sign.Is == scenario.Decisive {
		severity = 1 // high
	}
	id := "RELAPSE-" + strings.ToUpper(r.s.Metadata.Name+"-"+r.name)
	about := object{
		"id":           id,
		"severity":     severity,
		"title":        strings.TrimRight(r.s.Spec.Title, "."),
		"author":       "relapse",
		"category":     categories[r.s.Metadata.Failure],
		"tags":         []any{r.s.Metadata.Failure, r.s.Spec.Subject},
		"description":  r.message(),
		"cause":        strings.TrimSpace(r.s.Spec.Description),
		"references":   r.s.Spec.References,
		"applications": []any{application(r.s)},
	}
	if fixed := r.s.Spec.Match.Fixed; fixed != "" {
		about["mitigation"] = "The fix is in " + fixed + "."
	}
	return object{
		"metadata": object{"kind": "relapse", "id": base58(id)},
		"cre":      about,
		"rule":     object{"set": set},
	}
}

// application names the component, with the versions that are affected.
func application(s *scenario.Scenario) object {
	out := object{"name": s.Spec.Subject}
	if s.Spec.Match.Affected != "" {
		out["version"] = s.Spec.Match.Affected
	}
	return out
}

const base58Digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// base58 returns an identifier for a name, in the digits that preq wants.
func base58(name string) string {
	sum := sha256.Sum256([]byte(name))
	n, digit, base := new(big.Int).SetBytes(sum[:16]), new(big.Int), big.NewInt(int64(len(base58Digits)))
	var out []byte
	for n.Sign() > 0 {
		n.DivMod(n, base, digit)
		out = append(out, base58Digits[digit.Int64()])
	}
	slices.Reverse(out)
	return string(out)
}
