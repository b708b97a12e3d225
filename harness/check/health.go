package check

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	register(kind{
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
		New:     func() Check { return &Healthy{Path: "/readyz", For: "30s"} },
	})
}

// Healthy asks what a health endpoint answered.
type Healthy struct {
	Path string `json:"path,omitempty" jsonschema:"path of the endpoint, which begins with a slash: /readyz, /livez"`
	For  string `json:"for,omitempty" jsonschema:"how long the stretch before the end of the window is: a duration with its unit"`
	Tolerance
}

// Reads names health samples.
func (c *Healthy) Reads() []bundle.Kind { return []bundle.Kind{bundle.Health} }

// Validate refuses a path without a leading slash, a bad duration and a bad share.
func (c *Healthy) Validate() error {
	if !strings.HasPrefix(c.Path, "/") {
		return fmt.Errorf("path is %q (want one that begins with a slash: /readyz)", c.Path)
	}
	return errors.Join(positive("for", c.For), c.Tolerance.validate())
}

// Eval looks at all answers of the last stretch.
func (c *Healthy) Eval(v bundle.View, s Scope) Finding {
	q, ok := ask(c, v, s, fmt.Sprintf("%s answers 200 for the last %s", c.Path, c.For)+c.exceptText("answers"))
	if !ok {
		return q.Finding
	}
	hold := duration(c.For)
	st := readCounting(q.over(lastOf(q.window, hold)), bundle.Query{Kind: bundle.Health, Arm: q.arm},
		records[bundle.HealthSample], func(r bundle.HealthSample) bool { return r.Path == c.Path })
	var all []reading
	for _, r := range st.records {
		if r.Path != c.Path {
			continue
		}
		one := reading{asked: r.Time, done: r.Done}
		switch {
		case r.Code == 0:
			one.mute = r.Text
		case r.Code != 200:
			one.bad = fmt.Sprintf("%d %s", r.Code, r.Text)
		}
		all = append(all, one)
	}
	q.Evidence = st.paths
	return c.judgeReadings(q, all, st.doubt, hold, "answers of "+c.Path)
}
