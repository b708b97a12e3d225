package kinds

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/logs"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "stampMoves",
		Doc: "A watch of objects, with a name and a time stamp in each row, shows the stamp of one object move again and again.\n\n" +
			"This check is for what `kubectl get -w` prints of one time stamp, which relapse match takes for lines of the component's " +
			"log. A trial has better evidence: use churn. The stamps themselves tell when it was written. They must move so often in " +
			"a row, no two of them further apart than gap, over at least the time in over.",
		Example: "name: stamp-moves\nkind: stampMoves\nphase: fault\nspec:\n  component: fleet-agent\n  moves: 30\n  gap: 10s\n  over: 1m\n",
		New:     func() check.Check { return &StampMoves{Moves: 30, Gap: "10s", Over: "1m"} },
	})
}

// StampMoves asks whether a time stamp is written without end.
type StampMoves struct {
	Component string `json:"component" refers:"log" jsonschema:"component that writes the objects, such as fleet-agent"`
	Moves     int    `json:"moves,omitzero" jsonschema:"how often the stamp of one object must have moved in a row, at least (1 or more)"`
	Gap       string `json:"gap,omitempty" jsonschema:"how far apart two stamps of the row may be: a duration with its unit"`
	Over      string `json:"over,omitempty" refers:"stretch" jsonschema:"how long the row must last, at least: a duration with its unit"`
}

// Reads names component logs.
func (c *StampMoves) Reads() []bundle.Kind { return []bundle.Kind{bundle.Logs} }

// Validate refuses a row that any watch would have.
func (c *StampMoves) Validate() error {
	return cmp.Or(question.Refuse(c.Component == "", "component is empty"), question.Refuse(c.Moves < 1, "moves is %d (want at least 1)", c.Moves),
		question.Positive("gap", c.Gap), question.Positive("over", c.Over))
}

// Lines returns no pattern: what reads a watch keeps its rows for every check.
func (c *StampMoves) Lines() []string { return nil }

// Watched returns the component whose objects are watched. The rows of a watch don't name it.
func (c *StampMoves) Watched() string { return c.Component }

// stampRow matches a row of a watch.
var stampRow = regexp.MustCompile(`^(\S+)\s+([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z)$`)

// Eval looks for the longest row of stamps of one object.
func (c *StampMoves) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, fmt.Sprintf("a stamp that moves %d times in a row, at most %s apart, over %s", c.Moves, c.Gap, c.Over))
	if !ok {
		return q.Finding
	}
	log := logs.ComponentLog(q, c.Component)
	stamps := map[string][]time.Time{}
	text := map[string]string{}
	var names []string
	for _, l := range log.Records {
		m := stampRow.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339, m[2])
		if err != nil {
			continue
		}
		if stamps[m[1]] == nil {
			names = append(names, m[1])
			text[m[1]] = l.Text
		}
		stamps[m[1]] = append(stamps[m[1]], at)
	}
	if len(names) == 0 {
		return q.Unknown(cmp.Or(log.Doubt, check.Doubt(check.NotRecorded, "there is no watch of a time stamp")))
	}
	q.Evidence = log.Paths
	var best row
	for _, name := range names {
		if r := longest(stamps[name], question.Duration(c.Gap)); r.moves > best.moves || best.name == "" {
			best = r
			best.name, q.Detail = name, text[name]
		}
	}
	over := best.to.Sub(best.from)
	q.Say("the stamp of %s moves %d times in a row over %s", best.name, question.N("moves", best.moves), question.Rounded("overSeconds", over, time.Second))
	if best.moves >= c.Moves && over >= question.Duration(c.Over) {
		q.Met = check.True
		return q.Finding
	}
	q.DoubtBy(check.NotConclusive, ": a watch that ended early, or of another object, shows the same")
	return q.Finding
}

// row is a row of stamps of one object.
type row struct {
	name     string
	moves    int
	from, to time.Time
}

// longest returns the longest row of different stamps that are no further apart than gap.
func longest(stamps []time.Time, gap time.Duration) (best row) {
	slices.SortFunc(stamps, time.Time.Compare)
	var now row
	for i, at := range stamps {
		if i == 0 || at.Sub(now.to) > gap {
			now = row{from: at, to: at}
		} else if at.After(now.to) {
			now.moves, now.to = now.moves+1, at
		}
		if i == 0 || now.moves > best.moves {
			best = now
		}
	}
	return best
}
