package objects

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

func init() {
	check.Register(check.Kind{
		Name: "quietWorld",
		Doc: "Chosen objects stood still for a while, and then through a whole window.\n\n" +
			"Checks such as churn and metricRate look at this window: the first in the phase in which nobody else " +
			"gave a reason to write. Changes that come and go anyway, such as heartbeats, are ignored by their " +
			"paths. What happens in the namespaces of other arms is ignored, too. The record of objects must cover " +
			"the whole time: a gap is no standstill.",
		Example: "name: world-still\nkind: quietWorld\nphase: fault\nspec:\n  resources: [nodes, pods, " +
			"deployments.apps, daemonsets.apps]\n  still: 15s\n  for: 60s\n  terminating: 1\n",
		Meets:   `{"resources":["bundles.fleet.cattle.io"],"still":"500ms","for":"1s"}`,
		Differs: `{"resources":["bundledeployments.fleet.cattle.io"],"still":"5s","for":"10s"}`,
		New:     func() check.Check { return &QuietWorld{Quiet: DefaultQuiet()} },
	})
}

// Quiet describes the first window of a phase in which chosen objects stand still. Fields that are zero have the values
// of DefaultQuiet.
type Quiet struct {
	Resources   []string `json:"resources,omitempty" refers:"objects" jsonschema:"resources whose writes end the standstill: plural names, each with its API group unless that is the core group (default: nodes, pods, deployments.apps, daemonsets.apps)"`
	Still       string   `json:"still,omitempty" jsonschema:"how long the objects must stand still before the window opens: a duration with its unit (default 15s)"`
	For         string   `json:"for,omitempty" refers:"stretch" jsonschema:"how long the window is, in which the objects still stand still: a duration with its unit (default 60s)"`
	Ignore      []string `json:"ignore,omitempty" jsonschema:"paths whose changes don't end the standstill, each with everything below it: status.conditions[type=Ready].status, spec.list[0], metadata.labels[\"a.b/c\"]; [*] stands for any element of a list (default: status.conditions[*].lastHeartbeatTime)"`
	Terminating int      `json:"terminating,omitzero" jsonschema:"how many pods must have a deletionTimestamp when the standstill begins, at least (default 0). Needs pods among the resources"`
}

// DefaultQuiet returns the defaults: the resources that the incident's world consisted of, without the heartbeats of
// its nodes.
func DefaultQuiet() Quiet {
	return Quiet{
		Resources: []string{
			"nodes",
			"pods",
			"deployments.apps",
			"daemonsets.apps",
		},
		Still:  "15s",
		For:    "60s",
		Ignore: []string{"status.conditions[*].lastHeartbeatTime"},
	}
}

// WithDefaults returns c with its zero fields set to the defaults.
func (c Quiet) WithDefaults() Quiet {
	d := DefaultQuiet()
	c.Still, c.For = cmp.Or(c.Still, d.Still), cmp.Or(c.For, d.For)
	if len(c.Resources) == 0 {
		c.Resources = d.Resources
	}
	if c.Ignore == nil {
		c.Ignore = d.Ignore
	}
	return c
}

// Validate refuses bad durations, an empty path, and a number of terminating pods if pods are not among the resources.
// A nil Quiet is valid.
func (c *Quiet) Validate(field string) error {
	if c == nil {
		return nil
	}
	w := c.WithDefaults()
	return errors.Join(
		question.Positive(field+"still", w.Still),
		question.Positive(field+"for", w.For),
		question.Refuse(
			w.Terminating < 0,
			"%sterminating is %d (want 0 or more)",
			field,
			w.Terminating,
		),
		question.Refuse(w.Terminating > 0 && !slices.Contains(w.Resources, "pods"),
			"%sterminating is %d, and pods are not among the resources", field, w.Terminating),
		question.Refuse(
			slices.Contains(w.Ignore, ""),
			"%signore has an empty path, which would leave out everything",
			field,
		),
	)
}

// Reads returns the kinds of artifacts that show the window, or none if c is nil.
func (c *Quiet) Reads() []bundle.Kind {
	if c == nil {
		return nil
	}
	return []bundle.Kind{bundle.Objects}
}

func (c Quiet) wanted() string {
	c = c.WithDefaults()
	out := fmt.Sprintf(
		"%s still for %s, and then for %s more",
		strings.Join(c.Resources, ", "),
		c.Still,
		c.For,
	)
	if c.Terminating > 0 {
		out += fmt.Sprintf(", with at least %d pods terminating", c.Terminating)
	}
	return out
}

// Stillness is the result of a search for a quiet window.
type Stillness struct {
	Window bundle.Window // of the length asked for; zero if there is none
	doubt  error         // why it isn't known whether there is a quiet window
	said   string        // what was found instead of a quiet window
	Paths  []string
}

// Found reports whether there is a quiet window.
func (s Stillness) Found() bool { return !s.Window.End.IsZero() }

// WhyNotFound says why no quiet window was found.
func (s Stillness) WhyNotFound() error {
	return fmt.Errorf(
		"the window never came: %w",
		cmp.Or(
			s.doubt,
			check.Doubt(check.NotQuiet, "%s", cmp.Or(s.said, "they never stood still")),
		),
	)
}

// Find searches the question's window for the first quiet window. A standstill may begin at the start of the question's
// window, after any write, and after any gap in the records.
func (c Quiet) Find(q *question.Question) (out Stillness) {
	c = c.WithDefaults()
	w, still, long := q.Window, question.Duration(c.Still), question.Duration(c.For)
	world, doubt := c.World(q)
	if doubt != nil {
		out.doubt = doubt
		return out
	}
	used, disturbed := world.used, world.disturbed
	out.Paths = PathsOf(world.All)
	longest := time.Duration(0)
	for _, from := range begins(world.All, disturbed, w) {
		next, by := w.End, ""
		if i := sort.Search(len(disturbed),
			func(i int) bool { return disturbed[i].At.After(from) }); i < len(disturbed) &&
			disturbed[i].At.Before(w.End) {
			next, by = disturbed[i].At, ", until a write to "+disturbed[i].Resource+" "+disturbed[i].object()
		}
		if stood := next.Sub(from); stood > longest {
			longest = stood
			out.said = fmt.Sprintf(
				"they stood still for at most %s, in %s",
				stood.Round(100*time.Millisecond),
				question.Between(from, next),
			) + by
		}
		one := bundle.Window{Start: from, End: from.Add(still + long)}
		if one.End.After(next) {
			continue
		}
		// Nothing was written up to one.End, but a list may have shown by now what became of a
		// pod before from.
		if n := world.terminating(from.Add(still)); n < c.Terminating {
			out.said = fmt.Sprintf(
				"they stood still in %s with %d pods terminating",
				question.Between(from, next),
				n,
			)
			continue
		}
		if doubt := anyUncovered(used, one, 0); doubt != nil {
			out.doubt = doubt
			continue
		}
		out.Window, out.doubt = bundle.Window{Start: from.Add(still), End: one.End}, nil
		return out
	}
	out.doubt = cmp.Or(out.doubt, anyUncovered(used, w, question.Slack(w)))
	return out
}

// anyUncovered says for which of the resources the records don't cover a window, nil if all do.
func anyUncovered(used [][]*Recorded, w bundle.Window, slack time.Duration) error {
	for _, of := range used {
		if doubt := WhyUncovered(of, w, slack); doubt != nil {
			return doubt
		}
	}
	return nil
}

// begins returns the times at which a standstill may begin, in order.
func begins(all []*Recorded, disturbed []Written, w bundle.Window) []time.Time {
	at := map[time.Time]bool{w.Start: true}
	add := func(t time.Time) {
		if t.After(w.Start) && t.Before(w.End) {
			at[t] = true
		}
	}
	for _, r := range all {
		if r.Coverage == nil {
			continue
		}
		add(r.Coverage.First)
		for _, g := range r.Coverage.Gaps {
			add(g.To)
		}
	}
	for _, d := range disturbed {
		add(d.At)
	}
	return slices.SortedFunc(maps.Keys(at), time.Time.Compare)
}

// otherArms returns the namespaces that belong to other arms. What happens there, such as an agent that keeps crashing,
// gives this arm's subject no reason to write anything, and must not keep this arm from being judged.
func otherArms(v bundle.View, arm string) map[string]bool {
	out := map[string]bool{}
	for _, c := range v.World().Arms {
		if c.Arm != arm && c.Namespace != "" {
			out[c.Namespace] = true
		}
	}
	return out
}

// disturbances returns the writes that end a standstill, in order, and a function that counts the pods terminating at a
// time.
func (c Quiet) disturbances(all []*Recorded, used [][]*Recorded,
	others map[string]bool) ([]Written, func(time.Time) int) {
	ignored := PathPatterns(c.Ignore)
	var out, pods []Written
	for _, r := range all {
		for _, x := range r.versions {
			i := slices.Index(c.Resources, x.Resource)
			if i < 0 || !slices.Contains(used[i], r) || others[x.Namespace] {
				continue
			}
			if x.Resource == "pods" {
				pods = append(pods, x)
			}
			if x.effective() && !(x.Type == churn.Modified && x.Compared && AllMatch(ignored, x.Paths)) {
				out = append(out, x)
			}
		}
	}
	byTime := func(a, b Written) int { return a.At.Compare(b.At) }
	slices.SortStableFunc(out, byTime)
	slices.SortStableFunc(pods, byTime)
	return out, func(t time.Time) int {
		going := map[string]bool{}
		for _, p := range pods {
			if p.At.After(t) {
				break
			}
			if delete(going, p.object()); p.terminating && !p.gone() {
				going[p.object()] = true
			}
		}
		return len(going)
	}
}

// PathPatterns turns the paths of a spec into patterns. Each pattern also matches everything below its path, and [*]
// matches any element of a list.
func PathPatterns(paths []string) []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, p := range paths {
		out = append(
			out,
			regexp.MustCompile(
				"^"+strings.ReplaceAll(regexp.QuoteMeta(p), `\[\*\]`, `\[[^\]]*\]`)+`($|[.\[])`,
			),
		)
	}
	return out
}

// AllMatch reports whether each of the paths matches one of the patterns. It is true if there are no paths.
func AllMatch(meant []*regexp.Regexp, paths []string) bool {
	return !slices.ContainsFunc(paths, func(p string) bool {
		return !slices.ContainsFunc(
			meant,
			func(re *regexp.Regexp) bool { return re.MatchString(p) },
		)
	})
}

// QuietWorld asks whether there is a quiet window.
type QuietWorld struct {
	Quiet
}

// Reads names recorded objects.
func (c *QuietWorld) Reads() []bundle.Kind { return []bundle.Kind{bundle.Objects} }

// Validate refuses the same specs as Quiet.Validate.
func (c *QuietWorld) Validate() error { return c.Quiet.Validate("") }

// Eval searches for a quiet window.
func (c *QuietWorld) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.wanted())
	if !ok {
		return q.Finding
	}
	still := c.Find(q)
	q.Evidence = still.Paths
	switch {
	case still.Found():
		return q.Answer(check.True, "the window is "+question.Span(still.Window))
	case still.doubt != nil:
		return q.Unknown(still.doubt)
	}
	return q.Answer(check.False, cmp.Or(still.said, "they never stood still"))
}
