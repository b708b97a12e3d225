package objects

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

// Selected are the objects that a check is about.
type Selected struct {
	Resource  string `json:"resource" refers:"objects" jsonschema:"resource of the objects: plural name, with its API group unless that is the core group"`
	Name      string `json:"name,omitempty" jsonschema:"name of the object; $(arm) stands for the arm's name. Default: all objects"`
	Namespace string `json:"namespace,omitempty" jsonschema:"namespace of the objects, or arm for the arm's own record. Default: any namespace"`
}

func (c Selected) validate() error {
	return errors.Join(
		question.Refuse(c.Resource == "", "resource is empty"),
		question.OnlyArm("name", c.Name),
		question.OnlyArm("namespace", c.Namespace),
	)
}

// asked is what a check asks of each version of an object.
type asked struct {
	as      string // in words: two checks that ask the same share the work
	of      func(object []byte) (text string, met bool, err error)
	atLeast int  // how many objects it must be true of; 0 means all
	absent  bool // the objects must be gone instead
}

// values are the fields of an object at a time, and until its next change.
type values struct {
	at     time.Time
	object string
	write  string // the resourceVersion of a write that the watch showed; "" for a version that was only listed
	gone   bool
	doubt  error  // why the version has no value
	fields string // the fields asked for and their values, in order of their paths; "" with absent
	met    bool
}

// throughout answers whether what is asked of the objects holds through the last stretch of the window.
func (c Selected) throughout(
	q *question.Question,
	v bundle.View,
	last string,
	ask asked,
) check.Finding {
	of, doubt := c.records(v, q.Arm)
	if len(of) == 0 {
		return q.Unknown(cmp.Or(doubt, nobodyFollowed(c.Resource, q.Arm)))
	}
	hold := question.Duration(last)
	stretch := question.LastOf(q.Window, hold)
	r := bestOf(of, stretch, question.Slack(stretch))
	q.Evidence = []string{r.Path}
	began, gap := stretch.Start, WhyUncovered([]*Recorded{r}, stretch, question.Slack(stretch))
	doubt = cmp.Or(doubt, gap)
	// What was seen before a gap, or before the stretch, may be so no more.
	known := func(at time.Time) time.Time {
		if gap != nil {
			at = question.LaterOf(at, began)
		}
		return r.Coverage.From(at)
	}
	if r.Coverage != nil && r.Coverage.Last.Before(stretch.End) && r.Coverage.Last.After(q.Window.Start) {
		stretch = question.LastOf(bundle.Window{Start: q.Window.Start, End: r.Coverage.Last}, hold)
	}
	all, err := c.read(v, r, q.Arm, ask)
	if err != nil {
		return q.Unknown(err)
	}
	if err := c.judge(q, all, stretch, ask, known); err != nil {
		return q.Unknown(err)
	}
	switch {
	case q.Met == check.True && doubt != nil:
		return q.UnknownAfter(doubt)
	case q.Met == check.Unknown && doubt != nil:
		q.Code, q.Seen = check.CodeOf(doubt), doubt.Error()
	}
	return q.Throughout(stretch, hold)
}

// records returns the records in which the resource was followed: the arm's own if there are any, else the shared ones.
// If the spec gives the namespace by its name, the shared ones come first.
func (c Selected) records(v bundle.View, arm string) (of []*Recorded, doubt error) {
	arms := []string{arm, bundle.Shared}
	switch c.Namespace {
	case "":
	case "arm":
		arms = arms[:1]
	default:
		slices.Reverse(arms)
	}
	for _, one := range arms {
		all, bad := recordsOf(v, one)
		doubt = cmp.Or(doubt, bad)
		if of = following(all, c.Resource); len(of) > 0 {
			break
		}
	}
	return of, doubt
}

// read returns what is asked of every version of the selected objects.
func (c Selected) read(v bundle.View, r *Recorded, arm string, ask asked) ([]values, error) {
	name, namespace := question.ExpandArm(c.Name, arm), question.ExpandArm(c.Namespace, arm)
	as := fmt.Sprintf("%s of %s %s/%s", ask.as, c.Resource, namespace, name)
	return question.Remember(v, r.Artifact, as, func([]values, io.Reader) (out []values, err error) {
		in, err := v.Open(r.Artifact)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		left := presence{}
		anew := time.Time{} // when the objects were listed anew, until that list ends: they count as seen then, all at once
		for x, err := range churn.Read(in) {
			switch {
			case err != nil:
				return nil, err
			case x.Resource != c.Resource:
				continue
			case x.Type == churn.Lost:
				left.lost(x.Resource)
				anew = x.Time
			case x.Type == churn.Synced:
				for _, w := range left.synced(x) {
					out = append(out, values{at: w.At, object: w.object(), gone: true})
				}
				anew = time.Time{}
			}
			if x.Object == nil || name != "" && x.Name != name || namespace != "" &&
				namespace != "arm" && x.Namespace != namespace {
				continue
			}
			at := x.Time
			if x.Type == churn.Listed && !anew.IsZero() {
				at = anew
			}
			one := values{at: at, object: strings.TrimPrefix(x.Namespace+"/"+x.Name, "/"), gone: x.Type == churn.Deleted}
			if one.fields, one.met, err = ask.of(x.Object); err != nil && !one.gone {
				one.doubt = fmt.Errorf("%s at %s: %w", one.object, question.Clock(x.Time), err)
			}
			one.met = one.met && !one.gone
			if x.Type == churn.Added || x.Type == churn.Modified {
				one.write = x.ResourceVersion
			}
			left.saw(x)
			out = append(out, one)
		}
		return out, nil
	})
}

// judge checks the objects at the beginning of a stretch and at each change of an object in it,
// and sets the answer. known returns the first moment from a time on at which the record shows how
// the objects were, zero for none. Objects that were otherwise when they were last seen decide
// nothing before that moment, and are looked at again then.
func (c Selected) judge(
	q *question.Question,
	all []values,
	w bundle.Window,
	ask asked,
	known func(time.Time) time.Time,
) (doubt error) {
	now := map[string]values{}
	looked, unseen, changed := false, false, false
	var again time.Time // when the objects are looked at again, though nothing changes; zero for never
	look := func(at time.Time) {
		n, there := 0, 0
		for _, x := range now {
			doubt = cmp.Or(doubt, x.doubt)
			if x.met {
				n++
			}
			if !x.gone {
				there++
			}
		}
		met := there > 0 && n >= max(1, ask.atLeast) && (ask.atLeast > 0 || n == there)
		if ask.absent {
			met = there == 0
		}
		again = time.Time{}
		if from := known(at); !from.Equal(at) && (len(now) == 0 || !met) {
			again = from
			return
		}
		switch {
		case len(now) == 0:
			unseen = true
			return
		case !looked || !met: // a single False decides
			q.Met = check.Of(met)
		}
		looked = true
		if !met {
			q.Differs = append(q.Differs, question.Clock(at)+": "+states(now))
		}
	}
	start := slices.IndexFunc(all, func(x values) bool { return x.at.After(w.Start) })
	if start < 0 {
		start = len(all)
	}
	for _, x := range all[:start] {
		now[x.object] = x
	}
	look(w.Start)
	for i, x := range all[start:] {
		if x.at.After(w.End) {
			break
		}
		if !again.IsZero() && again.Before(x.at) {
			look(again)
		}
		before, ok := now[x.object]
		changed = changed || !ok || before.fields != x.fields || before.gone != x.gone
		now[x.object] = x
		last := start+i+1 == len(all) || all[start+i+1].at.After(x.at)
		if changed && last { // what was seen at once is looked at together
			look(x.at)
			changed = false
		}
	}
	if !again.IsZero() && !again.After(w.End) {
		look(again)
	}
	q.Seen = states(now)
	switch {
	case looked:
	case len(now) > 0:
		q.Code = check.Gap
		q.Say("%s, as far as it was seen before the gap in the record", states(now))
	default:
		q.Code = check.NotRecorded
		q.Say("no such %s was ever seen by %s", c.Resource, question.Clock(w.End))
	}
	if q.Met == check.True && unseen {
		q.Met, q.Differs = check.False, append(
			q.Differs,
			question.Clock(w.Start)+": it was not there",
		)
	}
	q.Differs = question.FirstAndLast(q.Differs)
	return doubt
}

// states describes the objects as they are: all of them, or the first and the last of many.
func states(now map[string]values) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		x := now[name]
		said := cmp.Or(x.fields, "there")
		if x.gone {
			said = "gone"
		}
		out = append(out, name+": "+said)
	}
	return strings.Join(question.FirstAndLast(out), "; ")
}
