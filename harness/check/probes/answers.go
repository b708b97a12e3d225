package probes

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	check.Register(check.Kind{
		Name: "answers",
		Doc: "How many calls of a load were answered in a way, what share of them, or how long they took, by the load's " +
			"own record.\n\n" +
			"verb and path choose the calls that are asked about; without them it is all calls of the load. Of these, " +
			"the calls that fit codes, reason and gaveUp are counted. A share is theirs among the calls that are asked " +
			"about, and durations are theirs, each from the request to the end of the answer.\n\n" +
			"Where the load's time was up, it isn't known what would have become of the calls under way, and of those " +
			"that the load didn't get to: the check answers only if they could not change the answer. If the load left " +
			"no record or not all of one, or if one of its rounds began outside the window, the answer is unknown. " +
			"In the baseline, a load that began only after it made no call. The answer is unknown, too, if there was no call " +
			"to ask about, and the check would be met by that. A call that ended without all of its answer took at least " +
			"as long as the load waited for it, unless such calls are what is asked about.",
		Example: "name: created-in-time\nkind: answers\nphase: fault\nspec:\n  load: creations\n  verb: POST\n" +
			"  codes: [2xx]\n  atLeast: 99%\n  duration: {quantile: 99%, atMost: 500ms}\n",
		Meets:   `{"load":"deletes","codes":[504],"atLeast":20}`,
		Differs: `{"load":"deletes","codes":["5xx"],"atMost":"50%"}`,
		New:     func() check.Check { return &Answers{} },
	})
}

// Answers checks the answers to a load's calls.
type Answers struct {
	Load     string         `json:"load" refers:"load" jsonschema:"name of the load"`
	Verb     string         `json:"verb,omitempty" jsonschema:"only calls with this verb, as the load records it: the HTTP method for the load requests. Default: any"`
	Path     string         `json:"path,omitempty" jsonschema:"only calls whose path and query match this regular expression. Default: any"`
	Codes    []kinds.Scalar `json:"codes,omitempty" jsonschema:"answers that count: a code (504), a class (5xx), or none for no answer. Default: any"`
	Reason   string         `json:"reason,omitempty" jsonschema:"only refusals with this reason count: AlreadyExists. Default: any"`
	GaveUp   *bool          `json:"gaveUp,omitempty" jsonschema:"whether the calls count that the client ended (true), or the others (false). Default: both"`
	AtLeast  kinds.Scalar   `json:"atLeast,omitempty" jsonschema:"how many calls must count, at least: a number, or a share (95%) of those asked about"`
	AtMost   kinds.Scalar   `json:"atMost,omitempty" jsonschema:"how many calls may count, at most: a number, or a share (5%) of those asked about"`
	Duration *Quantile      `json:"duration,omitempty" jsonschema:"how long the calls that count took"`
}

// Quantile asks how long calls took.
type Quantile struct {
	Quantile string `json:"quantile" jsonschema:"share of the calls that took no longer than what is compared: 50% is the median, 100% the longest"`
	AtLeast  string `json:"atLeast,omitempty" jsonschema:"shortest duration allowed. Default: any"`
	AtMost   string `json:"atMost,omitempty" jsonschema:"longest duration allowed. Default: any"`
}

// Reads names nothing: the calls and their summary come from the load itself.
func (*Answers) Reads() []bundle.Kind { return nil }

// Validate refuses a spec that any load would satisfy, and values that no call can have.
func (c *Answers) Validate() error {
	_, path := regexp.Compile(c.Path)
	if path != nil {
		path = fmt.Errorf("path: %w", path)
	}
	errs := []error{
		question.Refuse(c.Load == "", "load is empty"), path,
		question.Refuse(c.AtLeast == "" && c.AtMost == "" && c.Duration == nil,
			"nothing is asked (want atLeast, atMost or duration)"),
	}
	for _, code := range c.Codes {
		errs = append(errs, question.Refuse(!codePattern.MatchString(string(code)),
			"codes has %q (want a code such as 504, a class such as 5xx, or none)", code))
	}
	least, err := readAmount("atLeast", c.AtLeast)
	errs = append(errs, err)
	most, err := readAmount("atMost", c.AtMost)
	errs = append(errs, err,
		question.Refuse(least != nil && least.value == 0, "atLeast is %s, which any load satisfies", c.AtLeast),
		question.Refuse(most != nil && most.share && most.value == 1, "atMost is %s, which any load satisfies", c.AtMost),
		question.Refuse(least != nil && most != nil && least.share == most.share && least.value > most.value,
			"atLeast is %s, more than atMost, which is %s", c.AtLeast, c.AtMost),
		question.Refuse((least != nil && least.share || most != nil && most.share) &&
			len(c.Codes) == 0 && c.Reason == "" && c.GaveUp == nil,
			"a share is of all calls without codes, reason or gaveUp (want one of them)"),
		c.Duration.validate(),
	)
	return errors.Join(errs...)
}

// AsksLoad returns the load's name.
func (c *Answers) AsksLoad() string { return c.Load }

// Fits refuses a verb of which the load makes no call, and more calls than it makes.
func (c *Answers) Fits(load any) error {
	l, ok := load.(interface{ CallsByVerb() map[string]int })
	if !ok {
		return nil
	}
	all, err := chosen(l.CallsByVerb(), "verb", c.Verb, fmt.Sprintf("the load %q makes no such call", c.Load))
	if err != nil {
		return err
	}
	if least, err := readAmount("atLeast", c.AtLeast); err == nil && least != nil && !least.share && least.value > float64(all) {
		return &kinds.FieldError{Field: "atLeast", Err: fmt.Errorf("is %s, and the load %q makes %d such calls", c.AtLeast, c.Load,
			all)}
	}
	return nil
}

// chosen returns how many of a load's calls there are below a name that the field of a check has, of all if that is empty.
// none says what the load lacks if it has nothing of that name.
func chosen(calls map[string]int, field, name, none string) (n int, err error) {
	if name == "" {
		for _, k := range calls {
			n += k
		}
		return n, nil
	}
	n, is := calls[name]
	if !is {
		return 0, &kinds.FieldError{Field: field, Err: fmt.Errorf("is %q, and %s (want one of %s)", name, none,
			strings.Join(slices.Sorted(maps.Keys(calls)), ", "))}
	}
	return n, nil
}

func (d *Quantile) validate() error {
	if d == nil {
		return nil
	}
	share, err := question.Percent("duration.quantile", d.Quantile)
	return errors.Join(
		err,
		question.Refuse(
			err == nil && (share <= 0 || share > 1),
			"duration.quantile is %s (want above 0%% up to 100%%)",
			d.Quantile,
		),
		question.Refuse(
			d.AtLeast == "" && d.AtMost == "",
			"duration has no limit (want atLeast or atMost)",
		),
		question.Optional(
			"duration.atLeast",
			d.AtLeast,
		),
		question.Optional("duration.atMost", d.AtMost),
		question.Refuse(
			d.AtLeast != "" && d.AtMost != "" &&
				question.Duration(d.AtLeast) > question.Duration(d.AtMost),
			"duration.atLeast is %s, more than atMost, which is %s",
			d.AtLeast,
			d.AtMost,
		),
	)
}

// Describe says in words what is asked.
func (c *Answers) Describe() string {
	of := "calls of load " + c.Load
	for _, part := range []struct{ before, text string }{{" by ", c.Verb}, {" to ", c.Path}} {
		if part.text != "" {
			of += part.before + part.text
		}
	}
	if len(c.Codes) > 0 {
		of += " answered with " + strings.Join(texts(c.Codes), " or ")
	}
	if c.Reason != "" {
		of += " for the reason " + c.Reason
	}
	if c.GaveUp != nil {
		of += map[bool]string{true: " that the client ended", false: " that the client didn't end"}[*c.GaveUp]
	}
	var limits []string
	for _, limit := range []struct {
		word string
		of   kinds.Scalar
	}{{"at least ", c.AtLeast}, {"at most ", c.AtMost}} {
		if limit.of != "" {
			limits = append(limits, limit.word+string(limit.of))
		}
	}
	out := of
	if len(limits) > 0 {
		out = strings.Join(limits, " and ") + " " + of
	}
	if c.Duration != nil {
		out += ", " + c.Duration.describe()
	}
	return out
}

func (d *Quantile) describe() string {
	out := d.Quantile + " of them within a time"
	if d.AtLeast != "" {
		out += " of at least " + d.AtLeast
	}
	if d.AtMost != "" {
		out += " of at most " + d.AtMost
	}
	return out
}

func texts(list []kinds.Scalar) (out []string) {
	for _, s := range list {
		out = append(out, string(s))
	}
	return out
}

// Eval counts the calls that fit, and compares their number, share and durations with the limits.
func (c *Answers) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.Describe())
	if !ok {
		return q.Finding
	}
	sum, made, err := recordOf(q, c.Load)
	switch {
	case err != nil:
		return q.Unknown(err)
	case sum.Planned == 0 && len(made) > 0 && (c.Reason != "" || c.GaveUp != nil):
		return q.Unknown(
			check.Doubt(
				check.NotRecorded,
				"load %s was recorded by an earlier version, which noted neither "+
					"reasons nor which calls the load's end cut off",
				c.Load,
			),
		)
	}
	t := c.count(made, max(0, sum.Planned-len(made)))
	q.Say(
		"%d of %d%s",
		question.N("callsLikeIt", t.like),
		question.N("calls", t.asked),
		t.codes(),
	)
	if t.open > 0 {
		q.Add(
			"; of %d more it isn't known, because the load's time was up",
			question.N("callsNotKnown", t.open),
		)
	}
	parts := c.judge(q, t)
	seen := q.Seen
	q.AnswerAll(parts)
	q.Seen = seen
	for _, p := range parts {
		if p.Said != "" && !strings.HasSuffix(q.Seen, p.Said) {
			q.Add("; %s", p.Said)
		}
	}
	return q.Finding
}

// judge compares what was counted with each limit.
func (c *Answers) judge(q *question.Question, t counted) (parts []question.Part) {
	if least, _ := readAmount("atLeast", c.AtLeast); least != nil {
		parts = append(
			parts,
			t.compare(*least, func(is float64) bool { return is >= least.value }),
		)
	}
	if most, _ := readAmount("atMost", c.AtMost); most != nil {
		one := t.compare(*most, func(is float64) bool { return is <= most.value })
		if t.asked == 0 && one.Met == check.True {
			one = question.Unsure(check.Doubt(check.TooFew, "there was no call to ask about"))
		}
		parts = append(parts, one)
	}
	if c.Duration != nil {
		parts = append(parts, c.Duration.judge(q, t)...)
	}
	return parts
}
