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
			"a row, no two of them further apart than gap, over at least the time in over. A stamp that goes back shows that objects of " +
			"several namespaces have that name, and then nothing is known of any of them.",
		Example: "name: stamp-moves\nkind: stampMoves\nphase: fault\nspec:\n  component: fleet-agent\n  resource: " +
			"bundledeployments.fleet.cattle.io\n  moves: 30\n  gap: 10s\n  over: 1m\n",
		New: func() check.Check { return &StampMoves{Moves: 30, Gap: "10s", Over: "1m"} },
	})
}

// StampMoves asks whether a time stamp is written without end.
type StampMoves struct {
	Component string `json:"component" refers:"log" derives:"subject" jsonschema:"component that writes the objects, such as fleet-agent"`
	Resource  string `json:"resource" jsonschema:"plural name and API group of the objects, as kubectl get has them: bundledeployments.fleet.cattle.io"`
	Moves     int    `json:"moves,omitzero" jsonschema:"how often the stamp of one object must have moved in a row, at least (1 or more)"`
	Gap       string `json:"gap,omitempty" jsonschema:"how far apart two stamps of the row may be: a duration with its unit"`
	Over      string `json:"over,omitempty" refers:"stretch" jsonschema:"how long the row must last, at least: a duration with its unit"`
}

// Reads names component logs.
func (c *StampMoves) Reads() []bundle.Kind { return []bundle.Kind{bundle.Logs} }

// Validate refuses a row that any watch would have.
func (c *StampMoves) Validate() error {
	return cmp.Or(
		question.Refuse(c.Component == "", "component is empty"),
		question.Refuse(c.Resource == "", "resource is empty"),
		question.Refuse(c.Moves < 1, "moves is %d (want at least 1)", c.Moves),
		question.Positive("gap", c.Gap),
		question.Positive("over", c.Over),
	)
}

// Lines returns no pattern: what reads a watch keeps its rows for every check.
func (c *StampMoves) Lines() []string { return nil }

// Watched returns the component that writes the objects, which the rows of a watch don't name, and their resource.
func (c *StampMoves) Watched() (component, resource string) { return c.Component, c.Resource }

// stampRow matches a row of a watch. Its first part tells the object, with the namespace if that is known.
var stampRow = regexp.MustCompile(`^(\S+)\s+([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z)$`)

// Eval looks for the longest row of stamps of one object.
func (c *StampMoves) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, fmt.Sprintf("a stamp that moves %d times in a row, at most %s apart, over %s", c.Moves, c.Gap, c.Over))
	if !ok {
		return q.Finding
	}
	log := logs.ComponentLog(q, c.Component)
	rows := map[object]*row{}
	var objects []object
	for _, l := range log.Records {
		m := stampRow.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339, m[2])
		if err != nil {
			continue
		}
		one := object{l.File, m[1]}
		if rows[one] == nil {
			objects, rows[one] = append(objects, one), &row{text: l.Text}
		}
		rows[one].add(at, question.Duration(c.Gap))
	}
	if len(objects) == 0 {
		return q.Unknown(
			cmp.Or(
				log.Doubt,
				check.Doubt(check.NotRecorded, "there is no watch of a time stamp"),
			),
		)
	}
	q.Evidence = log.Paths
	slices.SortStableFunc(objects, func(a, b object) int {
		return cmp.Or(
			question.CountTrue(rows[a].back)-question.CountTrue(rows[b].back),
			rows[b].best.moves-rows[a].best.moves,
		)
	})
	best := rows[objects[0]]
	q.Detail = best.text
	if best.back {
		q.Say("the stamp of %s goes back", objects[0].name)
		q.DoubtBy(check.NotConclusive, ": its rows are of several objects with that name")
		return q.Finding
	}
	over := best.best.to.Sub(best.best.from)
	q.Say(
		"the stamp of %s moves %d times in a row over %s",
		objects[0].name,
		question.N("moves", best.best.moves),
		question.Rounded("overSeconds", over, time.Second),
	)
	if best.best.moves >= c.Moves && over >= question.Duration(c.Over) {
		q.Met = check.True
		return q.Finding
	}
	q.DoubtBy(
		check.NotConclusive,
		": a watch that ended early, or of another object, shows the same",
	)
	return q.Finding
}

// object is what one watch calls an object. Two watches may be of two clusters.
type object struct{ watch, name string }

// row is what the rows of one object show, in their order.
type row struct {
	text      string // of the first
	now, best moves  // the stamps in a row at the end, and those that moved most often
	back      bool   // some stamp is before the one above it, as no object's is
}

// moves is how often a stamp moved in a row.
type moves struct {
	moves    int
	from, to time.Time
}

// add takes the stamp of the next row. One that stays the same has not moved.
func (r *row) add(at time.Time, gap time.Duration) {
	switch {
	case at.Before(r.now.to):
		r.back = true
		return
	case r.now.to.IsZero() || at.Sub(r.now.to) > gap:
		r.now = moves{from: at, to: at}
	case at.After(r.now.to):
		r.now.moves, r.now.to = r.now.moves+1, at
	}
	if r.best.to.IsZero() || r.now.moves > r.best.moves {
		r.best = r.now
	}
}
