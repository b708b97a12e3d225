package check

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "healthy",
		Doc: "The subject's own health endpoint answered 200 through the last stretch of the window, each time but for what is tolerated.\n\n" +
			"One other answer more than that is decisive, and so are two in a row; no answer at all is unknown. Being well needs the whole stretch.",
		Example: "name: apiserver-well\nkind: healthy\nphase: recovery\nspec:\n  path: /readyz\n  for: 30s\n  tolerate: 10%\n",
		New:     func() Check { return &Healthy{Path: "/readyz", For: "30s"} },
	})
}

// Healthy asks what a health endpoint answered.
type Healthy struct {
	Path string `json:"path,omitempty" jsonschema:"the endpoint: /readyz, /livez"`
	For  string `json:"for,omitempty" jsonschema:"for how long before the end of the window: a duration with its unit"`
	Tolerance
}

// Reads names health samples.
func (c *Healthy) Reads() []bundle.Kind { return []bundle.Kind{bundle.Health} }

// Validate refuses a path that is none, and a stretch that is none.
func (c *Healthy) Validate() error {
	if !strings.HasPrefix(c.Path, "/") {
		return fmt.Errorf("path is %q (want one that begins with a slash: /readyz)", c.Path)
	}
	return errors.Join(positive("for", c.For), c.Tolerance.validate())
}

// Eval looks at all answers of the last stretch.
func (c *Healthy) Eval(v bundle.View, s Scope) Finding {
	wanted := fmt.Sprintf("%s answers 200 for the last %s", c.Path, c.For) + c.but("answers")
	if err := c.Validate(); err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	hold, _ := time.ParseDuration(c.For) // Validate has read it
	w, never := s.open(v)
	if never != "" {
		return unknown(wanted, never, nil)
	}
	st := read[bundle.HealthSample](v, bundle.Health, s.Cell, lastOf(w, hold))
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
	return c.well(all, st.paths, st.doubt, w, hold, wanted, "answers of "+c.Path)
}
