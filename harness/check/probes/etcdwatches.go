package probes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	check.Register(check.Kind{
		Name: "etcdWatches",
		Doc: "What etcd showed in the watches of a load etcd, compared with what the load itself had changed by then, by " +
			"the load's own record.\n\n" +
			"A watch shows all if it has every change of its key from the revision on at which it began up to the change " +
			"that it was read for, each once and in order, and nothing else. It has a gap if a change is missing although " +
			"a later one was shown: etcd promises that this never happens. It is refused if etcd said that the revision is " +
			"compacted. Otherwise it shows less or other than it should.\n\n" +
			"If a change of a watch's key had no answer, or an error of the server's (5xx), nobody knows what the watch should show. Where the load's time was " +
			"up, nobody knows what else it would have seen. The check then answers only if that could not change the " +
			"answer. If the load left no whole record, or if a round began outside the window, the answer is unknown. " +
			"In the baseline, a load that began only after it watched nothing.",
		Example: "name: deletes-missing\nkind: etcdWatches\nphase: fault\nspec: {load: history, shown: gap, lacks: DELETE, atLeast: 5}\n",
		Meets:   `{"load":"history","shown":"all","atLeast":2}`,
		Differs: `{"load":"history","shown":"gap","atLeast":1}`,
		New:     func() check.Check { return &EtcdWatches{} },
	})
}

// EtcdWatches counts the watches of a load by what they showed.
type EtcdWatches struct {
	Load    string `json:"load" refers:"load" jsonschema:"name of a load of the kind etcd"`
	Step    string `json:"step,omitempty" jsonschema:"only watches of the step with this name. Default: all"`
	Shown   string `json:"shown" jsonschema:"which watches count: those that showed all, that have a gap, that were refused, or that showed less or other changes"`
	Lacks   string `json:"lacks,omitempty" jsonschema:"with gap: only watches that lack a change of this type. Default: any"`
	AtLeast int    `json:"atLeast" jsonschema:"how many watches must count, at least (1 or more)"`
}

// What a watch showed.
const (
	showsAll     = "all"
	showsGap     = "gap"
	showsRefusal = "refused"
	showsLess    = "less"
)

var shown = []string{showsAll, showsGap, showsRefusal, showsLess}

// typeOf maps the verbs that change a key to the types of the events that show it.
var typeOf = map[string]string{"put": "PUT", "delete": "DELETE"}

// Reads names nothing: the record comes from the load itself.
func (*EtcdWatches) Reads() []bundle.Kind { return nil }

// Choices lists what watches can show, and the types of changes.
func (*EtcdWatches) Choices() map[string][]string {
	return map[string][]string{"shown": shown, "lacks": slices.Sorted(maps.Values(typeOf))}
}

// Validate refuses a question that any load would satisfy, and one that no watch could.
func (c *EtcdWatches) Validate() error {
	for _, err := range []error{
		question.Refuse(c.Load == "", "load is empty"),
		question.Refuse(!slices.Contains(shown, c.Shown), "shown is %q (want one of %s)", c.Shown, strings.Join(shown, ", ")),
		question.Refuse(c.Lacks != "" && c.Shown != showsGap, "lacks stands beside shown %s (want gap)", c.Shown),
		question.Refuse(c.Lacks != "" && !slices.Contains(slices.Collect(maps.Values(typeOf)), c.Lacks),
			"lacks is %q (want DELETE or PUT)", c.Lacks),
		question.Refuse(c.AtLeast < 1, "atLeast is %d (want at least 1)", c.AtLeast),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// AsksLoad returns the load's name.
func (c *EtcdWatches) AsksLoad() string { return c.Load }

// Fits refuses a step in which the load watches nothing, and more watches than it reads.
func (c *EtcdWatches) Fits(load any) error {
	l, ok := load.(interface{ Watches() map[string]int })
	if !ok {
		return nil
	}
	all, err := chosen(l.Watches(), "step", c.Step, fmt.Sprintf("the load %q has no watch of that name", c.Load))
	if err != nil {
		return err
	}
	if c.AtLeast > all {
		return &kinds.FieldError{Field: "atLeast", Err: fmt.Errorf("is %d, and the load %q reads %d such watches", c.AtLeast, c.Load,
			all)}
	}
	return nil
}

// Describe says in words what is asked.
func (c *EtcdWatches) Describe() string {
	of := "watches of load " + c.Load
	if c.Step != "" {
		of += " in step " + c.Step
	}
	what := map[string]string{showsAll: " that show all changes", showsGap: " that lack a change before one that they show",
		showsRefusal: " that are refused", showsLess: " that show less or other changes"}[c.Shown]
	if c.Lacks != "" {
		what = fmt.Sprintf(" that lack a %s before a change that they show", c.Lacks)
	}
	return fmt.Sprintf("at least %d %s%s", c.AtLeast, of, what)
}

// Eval counts the watches.
func (c *EtcdWatches) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.Describe())
	if !ok {
		return q.Finding
	}
	all, unasked, err := etcdRecord(q, c.Load)
	if err != nil {
		return q.Unknown(err)
	}
	like, open, asked := 0, unasked, 0
	by := map[string]int{}
	for _, w := range all {
		if w.Verb != "watch" || c.Step != "" && w.Step != c.Step {
			continue
		}
		asked++
		is, lacks, known := showed(w, all)
		switch {
		case !known:
			open++
			continue
		case is == c.Shown && (c.Lacks == "" || slices.ContainsFunc(lacks, func(e bundle.EtcdEvent) bool { return e.Type == c.Lacks })):
			if like++; like == 1 {
				q.Detail = describe(w, lacks)
			}
		case by[is] == 0 && is != showsAll:
			q.Differs = append(q.Differs, describe(w, lacks))
		}
		by[is]++
	}
	q.Say("%d of %d", question.N("watchesLikeIt", like), question.N("watches", asked))
	for _, is := range shown {
		if by[is] > 0 {
			q.Add(", %s: %d", is, by[is])
		}
	}
	return enough(q, like, open, c.AtLeast)
}

// enough answers whether so many answers of a load count. open is of how many more it isn't known whether they do.
func enough(q *question.Question, like, open, atLeast int) check.Finding {
	switch {
	case like >= atLeast:
		q.Met = check.True
	case like+open >= atLeast:
		q.DoubtBy(check.NotConclusive, "; of %d more it isn't known", open)
	default:
		q.Met = check.False
	}
	return q.Finding
}

// etcdRecord returns all answers that a load got from etcd, and how many requests it was still to send when its time was up.
func etcdRecord(
	q *question.Question,
	load string,
) (all []bundle.EtcdAnswer, unasked int, err error) {
	sum, made, err := recordOf(q, load)
	if err != nil {
		return nil, 0, err
	}
	for _, a := range q.View.Artifacts(bundle.Query{Kind: bundle.EtcdAnswers, Arm: q.Arm}) {
		if a.Missing || a.Error != "" {
			return nil, 0, question.CaptureError(a)
		}
		list, err := question.Records[bundle.EtcdAnswer](q.View, a)
		if err != nil {
			return nil, 0, err
		}
		own := slices.DeleteFunc(
			slices.Clone(list),
			func(one bundle.EtcdAnswer) bool { return one.Load != load },
		)
		if len(own) > 0 {
			all, q.Evidence = append(all, own...), append(q.Evidence, a.Path)
		}
	}
	if len(made) == 0 {
		all, q.Evidence = nil, q.Evidence[:1] // the load's summary is all that says so
	}
	if len(all) != len(made) {
		return nil, 0, check.Doubt(
			check.NotRecorded,
			"%d of the %d answers of etcd to load %s are recorded",
			len(all),
			len(made),
			load,
		)
	}
	return all, max(0, sum.Planned-len(made)), nil
}

// showed compares a watch with what the load changed. It returns what the watch lacks, if it has a gap. known is false
// if nobody knows what it should have shown.
func showed(
	w bundle.EtcdAnswer,
	all []bundle.EtcdAnswer,
) (is string, lacks []bundle.EtcdEvent, known bool) {
	var want []bundle.EtcdEvent
	for _, a := range all {
		if typeOf[a.Verb] == "" || a.Key != w.Key {
			continue
		}
		if a.Unanswered() { // it may have been carried out all the same
			return "", nil, false
		}
		if bundle.Success(a.Code) && a.Revision >= w.From && a.Revision <= w.Until {
			want = append(
				want,
				bundle.EtcdEvent{Type: typeOf[a.Verb], Key: a.Key, Revision: a.Revision},
			)
		}
	}
	if w.LoadEnded || w.From == 0 || w.Until == 0 {
		return "", nil, false
	}
	slices.SortFunc(want, func(a, b bundle.EtcdEvent) int { return int(a.Revision - b.Revision) })
	var last int64
	for _, e := range w.Events {
		last = max(last, e.Revision)
	}
	for _, e := range want {
		if e.Revision < last && !slices.Contains(w.Events, e) {
			lacks = append(lacks, e)
		}
	}
	switch {
	case len(lacks) > 0:
		return showsGap, lacks, true
	case bundle.Success(w.Code) && len(want) > 0 && slices.Equal(w.Events, want):
		return showsAll, nil, true
	case w.Canceled && w.Compacted > 0:
		return showsRefusal, nil, true
	}
	return showsLess, nil, true
}

// describe says what a watch showed and what it lacks.
func describe(w bundle.EtcdAnswer, lacks []bundle.EtcdEvent) string {
	list := func(events []bundle.EtcdEvent) string {
		var out []string
		for _, e := range events {
			out = append(out, fmt.Sprintf("%s %d", e.Type, e.Revision))
		}
		if out == nil {
			return "nothing"
		}
		return strings.Join(out, ", ")
	}
	out := fmt.Sprintf(
		"%s in round %d, from revision %d on: %s",
		w.Step,
		w.Round,
		w.From,
		list(w.Events),
	)
	switch {
	case lacks != nil:
		out += "; it lacks " + list(lacks)
	case w.Canceled:
		out += fmt.Sprintf(
			"; etcd ended it, with everything below %d compacted: %s",
			w.Compacted,
			w.Reason,
		)
	case w.Error != "":
		out += "; " + w.Error
	}
	return out
}
