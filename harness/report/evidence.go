package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// evidence reads a bundle for the reports, each artifact once.
type evidence struct {
	bundle.View
	metrics map[string]series // by the artifact's path
	errs    map[string]error
	dumps   map[string][]dump // by kind and arm
	match   []goroutine.Match // the goroutines that dumps are searched for
	by      [][]string        // by match: the checks of the signature that ask for them
	rests   map[restsKey][]string
}

// restsKey is an arm, and the number of a match. What its checks found there rests on the artifacts of these paths.
type restsKey struct {
	arm   string
	match int
}

func newEvidence(v bundle.View, p plan.Trial, arms []verdict.Arm) *evidence {
	e := &evidence{
		View:    v,
		metrics: map[string]series{},
		errs:    map[string]error{},
		dumps:   map[string][]dump{},
		match:   asked(p),
		rests:   map[restsKey][]string{},
	}
	for i, m := range e.match {
		e.by = append(e.by, askedBy(p.Signature, m))
		for _, a := range arms {
			for _, f := range flat(a.Signature) {
				if slices.Contains(e.by[i], f.Name) {
					e.rests[restsKey{a.Name, i}] = append(e.rests[restsKey{a.Name, i}], f.Evidence...)
				}
			}
		}
	}
	return e
}

// askedBy returns the names of the checks that ask for the goroutines that m chooses.
func askedBy(list []plan.Check, m goroutine.Match) (names []string) {
	for _, c := range list {
		if f, ok := c.Spec.(check.Figured); ok && f.Figure().Goroutines == m {
			names = append(names, c.Name)
		}
		names = append(names, askedBy(c.AnyOf, m)...)
	}
	return names
}

// flat returns findings with each group of alternatives followed by these.
func flat(list []check.Finding) (out []check.Finding) {
	for _, f := range list {
		out = append(append(out, f), flat(f.AnyOf)...)
	}
	return out
}

// samples returns the series in a stream of samples. Samples of one metric at one time are added up.
func (e *evidence) samples(a bundle.Artifact) (series, error) {
	key := a.Path
	if s, ok := e.metrics[key]; ok && key != "" {
		return s, e.errs[key]
	}
	s := series{}
	err := lines(e, a, func(m bundle.MetricSample) {
		all := s[m.Name]
		if n := len(all); n > 0 && all[n-1].at.Equal(m.Time) {
			all[n-1].n += m.Value
			return
		}
		s[m.Name] = append(all, value{m.Time, m.Value})
	})
	e.metrics[key], e.errs[key] = s, err
	return s, err
}

// sampled returns the values that f computes from the samples that q asks for. lacks says why samples are missing.
func (e *evidence) sampled(q bundle.Query, f func(series) []value) (out []value, lacks string) {
	q.Kind = bundle.MetricSamples
	for _, a := range e.Artifacts(q) {
		s, err := e.samples(a)
		if err != nil {
			lacks = err.Error()
		}
		out = append(out, f(s)...)
	}
	return out, lacks
}

// lines decodes a stream line by line, up to the first line that is broken.
func lines[T any](v bundle.View, a bundle.Artifact, yield func(T)) error {
	r, err := v.Open(a)
	if err != nil {
		return err
	}
	defer r.Close()
	in := bufio.NewScanner(r)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var one T
		if err := json.Unmarshal(in.Bytes(), &one); err != nil {
			return fmt.Errorf("reading %s: %w", a.Path, err)
		}
		yield(one)
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", a.Path, err)
	}
	return nil
}

// probed is what a report needs of a record of the collector etcdProbe.
type probed struct {
	Through []duration `json:"through"` // how long each answer took
	Err     string     `json:"err"`     // "" if every request was answered
}

// duration is a time.Duration that is text ("60ms") in JSON.
type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = duration(v)
	return err
}

// probes returns the slowest answer of etcd to each probe, in milliseconds. A probe without an answer has no value: all
// that is known is that it took longer than its limit.
func probes(e *evidence, arm string) (out []value, lacks string) {
	none := 0
	for _, a := range e.Artifacts(bundle.Query{Kind: bundle.EtcdProbe, Arm: arm}) {
		err := lines(e, a, func(p bundle.Stamped[probed]) {
			if p.Value.Err != "" || len(p.Value.Through) == 0 {
				none++
				return
			}
			out = append(out, value{p.Time, float64(slices.Max(p.Value.Through)) / 1e6})
		})
		if err != nil {
			lacks = err.Error()
		}
	}
	if none > 0 && lacks == "" {
		lacks = fmt.Sprintf("probes without an answer: %d", none)
	}
	return out, lacks
}

// bin is the stretch of time over which writes are counted.
const bin = 5 * time.Second

// writes returns a function that reads how many writes a second changed a resource's objects. It reads the recorded
// watch: the arm's own record, or the arm's namespace in a shared one. A time that the record doesn't cover has no
// value; a covered time without writes has 0.
func writes(
	resource string,
	namespace map[string]string,
) func(*evidence, string) ([]value, string) {
	return func(e *evidence, arm string) (out []value, lacks string) {
		for _, a := range e.Artifacts(bundle.Query{Kind: bundle.Objects}) {
			own := a.Arm == arm
			if !own && ((a.Arm != "" && a.Arm != bundle.Shared) || namespace[arm] == "") {
				continue
			}
			times, gaps, about, err := writtenIn(e, a, resource,
				func(v churn.Version) bool { return own || v.Namespace == namespace[arm] })
			if err != nil {
				lacks = err.Error()
			}
			if !about || a.Coverage == nil {
				continue
			}
			out = append(out, perSecond(times, a.Coverage, append(gaps, a.Coverage.Gaps...), err != nil)...)
		}
		return out, lacks
	}
}

// writtenIn returns when the objects were written to that of chooses, and where the record has gaps. about says whether
// the record is about the resource.
func writtenIn(
	e *evidence,
	a bundle.Artifact,
	resource string,
	of func(churn.Version) bool,
) (times []time.Time,
	gaps []bundle.Gap, about bool, err error) {
	r, err := e.Open(a)
	if err != nil {
		return nil, nil, false, err
	}
	defer r.Close()
	for u, err := range churn.Updates(r) {
		switch {
		case err != nil:
			return times, gaps, about, fmt.Errorf("reading %s: %w", a.Path, err)
		case u.Resource != resource:
			continue
		case u.Type == churn.Lost:
			gaps = append(gaps, bundle.Gap{From: u.From, To: u.Time})
		case u.Effective() && of(u.Version):
			times = append(times, u.Time)
		}
		about = true
	}
	return times, gaps, about, nil
}

// perSecond returns the writes a second in each bin that is covered as a whole. If the record was cut off, it ends with
// the last of times.
func perSecond(times []time.Time, c *bundle.Coverage, gaps []bundle.Gap, cut bool) []value {
	var out []value
	until := c.Last
	if cut {
		until = c.First
		if n := len(times); n > 0 {
			until = times[n-1]
		}
	}
	counts := churn.Series(times, c.First, until, bin)
	for i, n := range counts {
		from := c.First.Add(time.Duration(i) * bin)
		to := from.Add(bin)
		if to.After(until) || slices.ContainsFunc(gaps,
			func(g bundle.Gap) bool { return g.From.Before(to) && g.To.After(from) }) {
			continue
		}
		out = append(out, value{from.Add(bin / 2), float64(n) / bin.Seconds()})
	}
	return out
}
