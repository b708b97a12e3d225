package goroutines

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check/logs"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/klog"
)

// StartLine selects lines that say for how long something has lasted.
type StartLine struct {
	Pattern string `json:"pattern" jsonschema:"regular expression that the message must match, with a group named age that is a duration; case does not matter"`
	Exceeds string `json:"exceeds" jsonschema:"name of a group of the pattern, also a duration, that age must exceed: the limit that the line itself states"`
}

// maxPause is the longest pause between two lines: kubelet's sync loop logs at least every 5 s that it skips.
const maxPause = 5 * time.Second

// sameBeginning is how far apart two lines may put a beginning and still be about the same one.
const sameBeginning = 3 * time.Second

// overdue is a line whose age exceeds the limit that the line itself states. If suppressed isn't 0, it is that many
// dropped lines instead.
type overdue struct {
	at         time.Time
	age, limit time.Duration
	suppressed int
}

// began returns since when, according to the line, something has lasted.
func (o overdue) began() time.Time { return o.at.Add(-o.age) }

// lines returns the overdue lines of the whole journal, and its notes of dropped lines. It is called every two seconds
// while the journal grows, so it reads only what is new.
func (l StartLine) lines(q *question.Question) question.Stream[overdue] {
	re := regexp.MustCompile("(?i)" + l.Pattern) // Validate has compiled it
	type found struct {
		lines []overdue
		err   error // the first error
	}
	return question.ReadWith(q, bundle.Query{Kind: bundle.Journal, Arm: q.Arm},
		func(v bundle.View, a bundle.Artifact) ([]overdue, error) {
			all, err := question.Remember(v, a, "lines above their "+l.Exceeds+" like "+l.Pattern,
				func(out found, r io.Reader) (found, error) {
					for e, err := range klog.ReadJournal(r) {
						if err != nil {
							out.err = cmp.Or(out.err, fmt.Errorf("reading %s: %w", a.Path, err))
							continue
						}
						if e.Suppressed > 0 {
							out.lines = append(
								out.lines,
								overdue{at: e.Time, suppressed: e.Suppressed},
							)
							continue
						}
						m := re.FindStringSubmatch(e.Message)
						if m == nil {
							continue
						}
						age, err := time.ParseDuration(m[re.SubexpIndex("age")])
						limit, err2 := time.ParseDuration(m[re.SubexpIndex(l.Exceeds)])
						if err == nil && err2 == nil && age > limit {
							out.lines = append(
								out.lines,
								overdue{at: e.Time, age: age, limit: limit},
							)
						}
					}
					return out, nil
				})
			return all.lines, cmp.Or(err, all.err)
		})
}

// resolve returns the longest stretch of lines about one beginning. A loop that backs off pauses after each line, for
// twice as long as before, and does nothing in that time. So the pause after the last line belongs to the stretch.
func (l StartLine) resolve(q *question.Question) (out Stretch) {
	st := l.lines(q)
	var told []logs.Suppressed
	in := slices.DeleteFunc(slices.Clone(st.Records), func(o overdue) bool {
		told = append(told, logs.Suppressed{At: o.at, N: o.suppressed})
		return o.suppressed > 0 || !question.Contains(q.Window, o.at)
	})
	out.Paths = st.Paths
	for len(in) > 0 {
		n := 1
		for n < len(in) && in[n].began().Sub(in[0].began()).Abs() <= sameBeginning {
			n++
		}
		if last := in[n-1]; n > 1 && last.at.Sub(in[0].at) >= question.Length(out.Window) {
			pause := min(2*last.at.Sub(in[n-2].at), maxPause)
			out.Window = bundle.Window{
				Start: in[0].at,
				End:   question.EarlierOf(last.at.Add(pause), q.Window.End),
			}
			out.Said = fmt.Sprintf(
				"it said so from %s on, and at last: %s, above its own limit of %s",
				question.Clock(in[0].at),
				last.age.Round(100*time.Millisecond),
				last.limit,
			)
		} else if n == 1 && out.Said == "" {
			out.Absent = fmt.Sprintf(
				"it said so only once, at %s: %s, above its own limit of %s",
				question.Clock(last.at),
				last.age,
				last.limit,
			)
		}
		in = in[n:]
	}
	switch {
	case out.Said != "":
		out.Absent = ""
	case cmp.Or(st.Doubt, logs.DescribeSuppressed(q, told)) != nil:
		out.Doubt = cmp.Or(st.Doubt, logs.DescribeSuppressed(q, told))
	case out.Absent == "":
		out.Absent = fmt.Sprintf("it never said so: no line like %q", l.Pattern)
	}
	return out
}

func (l StartLine) validate(field string) error {
	re, err := regexp.Compile("(?i)" + l.Pattern)
	if err != nil {
		return fmt.Errorf("%s.pattern: %w", field, err)
	}
	return cmp.Or(
		question.Refuse(re.SubexpIndex("age") < 0, "%s.pattern has no group age", field),
		question.Refuse(
			l.Exceeds == "" || re.SubexpIndex(l.Exceeds) < 0,
			"%s.exceeds is %q (want a group of the pattern)",
			field,
			l.Exceeds,
		),
	)
}
