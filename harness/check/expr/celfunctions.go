package expr

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/logs"
	"github.com/kube-relapse/relapse/harness/check/metrics"
	"github.com/kube-relapse/relapse/harness/check/objects"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/evidence/klog"
)

// The types of the values that the functions return.
type (
	celGroup struct {
		State     string   `cel:"state"`
		Frames    []string `cel:"frames"`
		CreatedBy string   `cel:"createdBy"`
		Count     int      `cel:"count"`
	}
	celMetric struct {
		First   float64 `cel:"first"`
		Last    float64 `cel:"last"`
		Min     float64 `cel:"min"`
		Max     float64 `cel:"max"`
		Samples int     `cel:"samples"`
	}
	celMessage struct {
		Message  string `cel:"message"`
		Severity string `cel:"severity"`
		Lines    int    `cel:"lines"`
	}
	celAudited struct {
		Stage       string `cel:"stage"`
		Lost        bool   `cel:"lost"`
		Code        int    `cel:"code"`
		Annotations int    `cel:"annotations"`
		Error       string `cel:"error"`
	}
	celWrites struct {
		Changed     string `cel:"changed"`
		Manager     string `cel:"manager"`
		Subresource string `cel:"subresource"`
		Count       int    `cel:"count"`
	}
)

func (a *asked) functions() []cel.EnvOption {
	object := func(t reflect.Type) *cel.Type { return cel.ObjectType(t.String()) }
	labels := cel.MapType(cel.StringType, cel.StringType)
	none, one, two := []*cel.Type{}, []*cel.Type{cel.StringType}, []*cel.Type{cel.StringType, labels}
	function := func(name string, gives *cel.Type, read reader, takes ...[]*cel.Type) cel.EnvOption {
		var forms []cel.FunctionOpt
		for _, types := range takes {
			forms = append(forms, cel.Overload(fmt.Sprintf("%s_%d", name, len(types)), types, gives,
				cel.FunctionBinding(func(args ...ref.Val) ref.Val { return a.answer(name, args, read) })))
		}
		return cel.Function(name, forms...)
	}
	return []cel.EnvOption{
		function(
			"dumps",
			cel.ListType(cel.ListType(object(reflect.TypeFor[celGroup]()))),
			a.dumps,
			none,
		),
		function("metric", object(reflect.TypeFor[celMetric]()), a.metric, one, two),
		function("increase", cel.DoubleType, a.increase, one, two),
		function(
			"messages",
			cel.ListType(object(reflect.TypeFor[celMessage]())),
			a.messages,
			one,
		),
		function("audited", cel.ListType(object(reflect.TypeFor[celAudited]())), a.audited, none),
		function("reviewed", cel.ListType(object(reflect.TypeFor[celReviewed]())), a.reviewed, none),
		function("webhookAnswers", cel.ListType(object(reflect.TypeFor[celWebhookAnswer]())), a.webhookAnswers, none),
		function("writes", cel.ListType(object(reflect.TypeFor[celWrites]())), a.writes, one),
	}
}

// reader returns a function's value and a description of the value in words. If there is no value, doubt says why.
type reader func(args []ref.Val) (value any, said string, doubt error)

// answer returns the value of a function called with args, or an error if read has a doubt.
func (a *asked) answer(name string, args []ref.Val, read reader) ref.Val {
	if a.Question == nil {
		return a.nothing(name)
	}
	var given []string
	for _, arg := range args {
		given = append(given, types.Format(arg))
	}
	call := name + "(" + strings.Join(given, ", ") + ")"
	if have, ok := a.answers[call]; ok {
		return have
	}
	value, said, doubt := read(args)
	if doubt != nil {
		a.answers[call] = types.WrapErr(noAnswer{fmt.Errorf("%s: %w", call, doubt)})
	} else {
		a.answers[call] = a.adapter.NativeToValue(value)
		a.said = append(a.said, call+": "+said)
	}
	return a.answers[call]
}

func (a *asked) dumps([]ref.Val) (any, string, error) {
	var c question.Captured
	out, n := [][]celGroup{}, []string{}
	c.Each(a.Question, bundle.Goroutines2, "dump", func(art bundle.Artifact) error {
		d, err := question.ReadCompleteDump(a.View, art)
		if err != nil {
			return err
		}
		out, n = append(out, grouped(d)), append(n, fmt.Sprint(d.Total))
		return nil
	})
	a.Evidence = question.Union(a.Evidence, c.Paths...)
	doubt := c.Missing
	if len(out) == 0 {
		doubt = cmp.Or(
			doubt,
			failures(c.Notes),
			check.Doubt(check.NotRecorded, "there is no dump in %s", question.Span(a.Window)),
		)
	}
	return out, "goroutines in each: " + strings.Join(question.FirstAndLast(n), ", "), doubt
}

// failures returns what is known of failed captures as one error, nil if none failed.
func failures(notes []string) error {
	if len(notes) == 0 {
		return nil
	}
	return check.Doubt(check.Unreadable, "%s", strings.Join(question.FirstAndLast(notes), "; "))
}

// grouped groups goroutines with the same state, functions and creator.
func grouped(d *goroutine.Dump) []celGroup {
	out, at := []celGroup{}, map[string]int{}
	for _, g := range d.Groups {
		one := celGroup{State: g.State, CreatedBy: g.CreatedBy, Frames: []string{}}
		for _, f := range g.Frames {
			one.Frames = append(one.Frames, f.Func)
		}
		key := fmt.Sprintf("%+v", one)
		if _, have := at[key]; !have {
			at[key] = len(out)
			out = append(out, one)
		}
		out[at[key]].Count += g.Count
	}
	return out
}

// series returns the samples of the metric that args names, with the labels in args if there are any.
func (a *asked) series(args []ref.Val) metrics.Series {
	var labels map[string]string
	if len(args) > 1 {
		native, err := args[1].ConvertToNative(reflect.TypeOf(labels))
		if err != nil {
			return metrics.Series{Doubt: check.Doubt(check.BadCheck, "%w", err)}
		}
		labels = native.(map[string]string)
	}
	s := metrics.ReadSeries(a.Question, string(args[0].(types.String)), labels)
	a.Evidence = question.Union(a.Evidence, s.Paths...)
	return s
}

func (a *asked) metric(args []ref.Val) (any, string, error) {
	s := a.series(args)
	if s.Doubt != nil || len(s.Samples) == 0 {
		return nil, "", cmp.Or(
			s.Doubt,
			check.Doubt(check.NotRecorded, "there is no sample in %s", question.Span(a.Window)),
		)
	}
	by := func(x, y metrics.Sample) int { return cmp.Compare(x.Value, y.Value) }
	m := celMetric{First: s.First().Value, Last: s.Last().Value, Samples: len(s.Samples)}
	m.Min, m.Max = slices.MinFunc(s.Samples, by).Value, slices.MaxFunc(s.Samples, by).Value
	said := fmt.Sprintf("from %.10g to %.10g in %d samples", m.First, m.Last, m.Samples)
	return m, said + fmt.Sprintf(", at least %.10g, at most %.10g", m.Min, m.Max), nil
}

func (a *asked) increase(args []ref.Val) (any, string, error) {
	s := a.series(args)
	if doubt := s.WhyNoRate(); doubt != nil {
		return nil, "", doubt
	}
	return s.Growth(), fmt.Sprintf("%.10g between %s", s.Growth(), question.Span(s.Extent())), nil
}

func (a *asked) messages(args []ref.Val) (any, string, error) {
	l := logs.LogLines{Component: string(args[0].(types.String)), Pattern: ".*"}.Find(a.Question)
	a.Evidence = question.Union(a.Evidence, l.Paths...)
	var all []celMessage
	for _, r := range l.Found {
		one := celMessage{Message: r.Text}
		if line, ok := klog.Parse([]byte(r.Text), r.Time); ok {
			one = celMessage{Message: line.Message, Severity: line.Severity.String()}
		}
		all = append(all, one)
	}
	out := counted(all, func(m *celMessage) *int { return &m.Lines })
	return out, fmt.Sprintf("%d lines with %d messages", len(l.Found), len(out)), l.Doubt
}

const (
	received = "RequestReceived" // the audit stage of a request that has no answer yet
	// stillUnderWay is how long a received request may go without its end before it counts as lost.
	stillUnderWay = 10 * time.Second
)

func (a *asked) audited([]ref.Val) (any, string, error) {
	st := question.Read[bundle.AuditEvent](a.Question, bundle.Audit)
	a.Evidence = question.Union(a.Evidence, st.Paths...)
	ended := map[string]bool{}
	for _, e := range st.Records {
		ended[e.ID] = ended[e.ID] || e.Stage == "ResponseComplete" || e.Stage == "Panic"
	}
	all, codes, lost := []celAudited{}, map[int][]int{}, 0
	for _, e := range st.Records {
		if !question.Contains(a.Window, e.Time) {
			continue
		}
		one := celAudited{
			Stage:       e.Stage,
			Code:        e.Code,
			Annotations: e.Annotations,
			Error:       e.Error,
		}
		if e.Stage == received {
			one.Lost = !ended[e.ID] && st.Last.Sub(e.Time) >= stillUnderWay
		} else {
			codes[e.Code] = append(codes[e.Code], e.Annotations)
		}
		if all = append(all, one); one.Lost {
			lost++
		}
	}
	said := fmt.Sprintf("%d lines", len(all))
	if lost > 0 {
		said += fmt.Sprintf("; %d requests without an end", lost)
	}
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		n := codes[code]
		said += fmt.Sprintf(
			"; %d x %d with %d to %d annotations",
			len(n),
			code,
			slices.Min(n),
			slices.Max(n),
		)
	}
	return all, said, st.Doubt
}

func (a *asked) writes(args []ref.Val) (any, string, error) {
	resource := string(args[0].(types.String))
	of, doubt := objects.RecordsFollowing(a.View, a.Arm, resource)
	if len(of) == 0 {
		return nil, "", doubt
	}
	a.Evidence = question.Union(a.Evidence, objects.PathsOf(of)...)
	if doubt = cmp.Or(doubt, objects.WhyUncovered(of, a.Window, question.Slack(a.Window))); doubt != nil {
		return nil, "", doubt
	}
	var all []celWrites
	for _, w := range objects.ActivityOf(of, resource, "", a.Window).All {
		all = append(
			all,
			celWrites{Changed: w.Class, Manager: w.Manager, Subresource: w.Subresource},
		)
	}
	out := counted(all, func(w *celWrites) *int { return &w.Count })
	return out, fmt.Sprintf("%d writes of %d kinds", len(all), len(out)), nil
}

// counted returns each distinct value of all once, in the order of first appearance. The field that count points to has
// the number of times that the value appears.
func counted[T comparable](all []T, count func(*T) *int) []T {
	out, at := []T{}, map[T]int{}
	for _, one := range all {
		i, have := at[one]
		if !have {
			i, at[one] = len(out), len(out)
			out = append(out, one)
		}
		*count(&out[i])++
	}
	return out
}
