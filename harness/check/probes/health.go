package probes

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "healthy",
		Doc: "Through the last stretch of the window, the subject's health endpoint answered 200 to each probe, " +
			"except for the share in tolerate.\n\n" +
			"One more bad answer than that makes the check false, and so do two in a row. Probes without an answer " +
			"never make the check false; more of them than tolerate allows make the answer unknown. The check is " +
			"true only if the answers cover the whole stretch.",
		Example: "name: apiserver-well\nkind: healthy\nphase: recovery\nspec:\n  path: /readyz\n  for: 30s\n  " +
			"tolerate: 10%\n",
		Meets:   `{"path":"/readyz","for":"1s"}`,
		Differs: `{"path":"/livez","for":"1s"}`,
		New:     func() check.Check { return &Healthy{Path: "/readyz", For: "30s"} },
	})
}

// Healthy asks what a health endpoint answered.
type Healthy struct {
	Path string `json:"path,omitempty" refers:"health" derives:"ready" jsonschema:"path of the endpoint, which begins with a slash: /readyz, /livez"`
	For  string `json:"for,omitempty" refers:"stretch" jsonschema:"how long the stretch before the end of the window is: a duration with its unit"`
	Tolerance
}

// Reads names health samples.
func (c *Healthy) Reads() []bundle.Kind { return []bundle.Kind{bundle.Health} }

// Validate refuses a path without a leading slash, a bad duration and a bad share.
func (c *Healthy) Validate() error {
	if !strings.HasPrefix(c.Path, "/") {
		return fmt.Errorf("path is %q (want one that begins with a slash: /readyz)", c.Path)
	}
	return errors.Join(question.Positive("for", c.For), c.Tolerance.Validate())
}

// Eval looks at all answers of the last stretch.
func (c *Healthy) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, fmt.Sprintf("%s answers 200 for the last %s", c.Path, c.For)+c.Tolerance.Describe("answers"))
	if !ok {
		return q.Finding
	}
	hold := question.Duration(c.For)
	st := question.ReadCounting(
		q.Over(question.LastOf(q.Window, hold)),
		bundle.Query{Kind: bundle.Health, Arm: q.Arm},
		question.Records[bundle.HealthSample],
		func(r bundle.HealthSample) bool { return r.Path == c.Path },
	)
	var all []Reading
	for _, r := range st.Records {
		if r.Path != c.Path {
			continue
		}
		one := Reading{Asked: r.Time, Done: r.Done}
		switch {
		case r.Code == 0:
			one.mute = r.Text
		case r.Code != 200:
			one.Bad = fmt.Sprintf("%d %s", r.Code, r.Text)
		}
		all = append(all, one)
	}
	q.Evidence = st.Paths
	return c.Judge(q, all, st.Doubt, hold, "answers of "+c.Path)
}
