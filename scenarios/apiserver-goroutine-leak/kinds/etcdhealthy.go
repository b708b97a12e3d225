package kinds

import (
	"errors"
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/probes"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "etcdHealthy",
		Doc: "The etcd behind the subject is healthy and quick through the last stretch of the window.\n\n" +
			"The etcd seam probes etcd on a connection like the subject's. Each probe in the stretch, except for the " +
			"share in tolerate, must find etcd healthy and every answer quicker than below. One more bad probe than " +
			"that makes the check false, and so do two in a row. The check is true only if the probes cover the " +
			"whole stretch.",
		Example: "name: etcd-well\nkind: etcdHealthy\nphase: recovery\nspec:\n  below: 100ms\n  for: 120s\n  " +
			"tolerate: 10%\n",
		Meets:   `{"below":"3s","for":"1s"}`,
		Differs: `{"below":"1ns","for":"1s"}`,
		New:     func() check.Check { return &EtcdHealthy{Below: "100ms", For: "120s"} },
	})
}

// EtcdHealthy asks whether etcd, probed through the seam, is healthy and answers quickly.
type EtcdHealthy struct {
	Below string `json:"below,omitempty" jsonschema:"each answer must come sooner than this: a duration with its unit"`
	For   string `json:"for,omitempty" refers:"stretch" jsonschema:"how long the stretch before the end of the window is: a duration with its unit"`
	probes.Tolerance
}

// Reads names the seam's probes.
func (c *EtcdHealthy) Reads() []bundle.Kind { return []bundle.Kind{bundle.EtcdProbe} }

// Validate refuses bad durations and a bad share.
func (c *EtcdHealthy) Validate() error {
	return errors.Join(
		question.Positive("below", c.Below),
		question.Positive("for", c.For),
		c.Tolerance.Validate(),
	)
}

// Eval looks at all probes of the last stretch.
func (c *EtcdHealthy) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(
		c,
		v,
		s,
		fmt.Sprintf("etcd healthy and answering within %s for the last %s", c.Below,
			c.For)+c.Tolerance.Describe("probes"),
	)
	if !ok {
		return q.Finding
	}
	hold := question.Duration(c.For)
	last := question.LastOf(q.Window, hold)
	st := question.Read[bundle.Stamped[control.ConnectionProbe]](q.Over(last), bundle.EtcdProbe)
	var all []probes.Reading
	slowest := time.Duration(0)
	for _, r := range st.Records {
		one := probes.Reading{
			Asked: r.Value.At,
			Done:  question.LaterOf(r.Time, r.Value.At),
			Bad:   unhealthyBecause(r.Value, question.Duration(c.Below)),
		}
		if one.Asked.IsZero() {
			one.Asked = r.Time
		}
		all = append(all, one)
		if one.Bad == "" && question.Contains(last, r.Time) {
			slowest = max(slowest, control.Slowest(r.Value.Through))
		}
	}
	q.Evidence = st.Paths
	f := c.Judge(q, all, st.Doubt, hold, "probes of etcd")
	if f.Met == check.True {
		f.Seen += fmt.Sprintf(
			", the slowest good answer after %s",
			slowest.Round(10*time.Microsecond),
		)
	}
	return f
}

// unhealthyBecause says what a probe found wrong, "" if nothing. A probe without answers is no sign of health.
func unhealthyBecause(p control.ConnectionProbe, limit time.Duration) string {
	slowest := control.Slowest(p.Through)
	switch {
	case p.Err != "":
		return p.Err
	case len(p.Through) == 0:
		return "no answer was timed"
	case !p.Healthy:
		return "etcd says that it is not healthy"
	case slowest >= limit:
		return fmt.Sprintf("an answer took %s", slowest.Round(time.Millisecond))
	}
	return ""
}
