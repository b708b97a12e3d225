// Package expr has the check cel. It evaluates an expression that the scenario's author wrote in CEL, the Common
// Expression Language, over what was captured: goroutine dumps, metrics, logs, audit events and writes to objects.
package expr

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	check.Register(check.Kind{
		Name: "cel",
		Doc: "An expression in CEL, the Common Expression Language, for a question that no other kind asks.\n\n" +
			"The expression calls functions, which return the arm's evidence in the window:\n\n" +
			"    dumps()              for each debug=2 dump, oldest first, a list of goroutine groups:\n" +
			"                         state, frames (innermost first), createdBy, count\n" +
			"    metric(name)         a metric with all label sets added up: first, last, min, max, samples\n" +
			"    increase(name)       how much a counter grew from the first sample to the last\n" +
			"    messages(component)  a list of the messages in a component's log:\n" +
			"                         message, severity (I, W, E or F, empty if the line isn't klog's), lines (how\n" +
			"                         many lines have the message)\n" +
			"    audited()            for each line of the API server's audit log: stage, code, annotations (how many\n" +
			"                         the event has), error (if the line is no event), lost (if the request was\n" +
			"                         received, and the log goes on for 10 s or more without ever showing its end)\n" +
			"    reviewed()           for each audit event that was written after a fault's validating webhook had\n" +
			"                         reviewed its object: code, given (how many annotations the event must have,\n" +
			"                         by the webhooks' own record), has (how many annotations the event has)\n" +
			"    webhookAnswers()     for each request that a fault webhook was asked about: webhook (the fault's\n" +
			"                         name, and /NAME if it has several), rule (from 1, 0 for none), outcome (answered, never, closed, or left\n" +
			"                         if the API server went before its answer), code, allowed, operation,\n" +
			"                         resource, object (namespace/name), seconds (until then). Of a conversion:\n" +
			"                         operation is CONVERT, allowed says whether it succeeded; version (the desired\n" +
			"                         one), objects (how many), object (if there is one)\n" +
			"    writes(resource)     a list of the writes to objects of a resource:\n" +
			"                         changed (paths), manager, subresource, count\n\n" +
			"metric and increase take labels that the samples must have as a second argument, {\"code\": " +
			"\"500\"}.\n\n" +
			"If evidence that a function reads is missing or has a gap, the function has no value, and neither has " +
			"anything that is computed from it. The check is then unknown, never false. Only && and || still have a " +
			"value if their other side decides. An expression that costs too much to evaluate is unknown, too.",
		Example: "name: blocked-senders\nkind: cel\nphase: recovery\nspec:\n" +
			"  expression: dumps().all(d, d.exists(g, g.state == \"chan send\" && g.count > 3))\n",
		Meets: `{"expression":"metric('stands_total').first == metric('stands_total').last && ` +
			`increase('grows_total') >= 3.0 && ` +
			`dumps().exists(d, d.exists(g, g.state == 'chan send' && g.frames[0].endsWith('Relist')))"}`,
		Differs: `{"expression":"messages('kubelet').exists(m, m.message == 'no such message')"}`,
		New:     func() check.Check { return &CEL{} },
	})
}

// CEL asks whether an expression over the evidence is true.
type CEL struct {
	Expression string `json:"expression" jsonschema:"a CEL expression whose value is a bool"`
}

// maxCost limits an evaluation to about a second. A walk through all frames of a phase's dumps costs less.
const maxCost = 2_000_000

// source is what a function of an expression reads.
type source struct {
	reads []bundle.Kind
	of    string // what its first argument refers to, one of kinds.Referents; "" for nothing
	many  bool   // it returns a list, which is empty where nothing was there
}

// asks maps each function of an expression to what it reads.
var asks = map[string]source{
	"dumps":          {reads: []bundle.Kind{bundle.Goroutines2}}, // a dump has all goroutines, so that a list of them is never empty
	"metric":         {[]bundle.Kind{bundle.MetricSamples}, kinds.ToMetric, false},
	"increase":       {[]bundle.Kind{bundle.MetricSamples}, kinds.ToMetric, false},
	"messages":       {[]bundle.Kind{bundle.Logs}, kinds.ToLog, true},
	"writes":         {[]bundle.Kind{bundle.Objects}, kinds.ToObjects, true},
	"audited":        {[]bundle.Kind{bundle.Audit}, "", true},
	"reviewed":       {[]bundle.Kind{bundle.Audit, bundle.Reviews}, "", true},
	"webhookAnswers": {[]bundle.Kind{bundle.Reviews}, "", true},
}

// Reads names the evidence that the functions in the expression read.
func (c *CEL) Reads() []bundle.Kind {
	var out []bundle.Kind
	for _, call := range c.calls() {
		out = question.Union(out, asks[call.FunctionName()].reads...)
	}
	return out
}

// Validate refuses an expression that doesn't compile, isn't a bool or asks for no evidence.
func (c *CEL) Validate() error {
	if c.Expression == "" {
		return errors.New("expression is empty")
	}
	if _, _, err := c.compile(nil); err != nil {
		return err
	}
	known := strings.Join(slices.Sorted(maps.Keys(asks)), ", ")
	return question.Refuse(
		len(c.Reads()) == 0,
		"expression asks for no evidence (want one of %s)",
		known,
	)
}

// compile parses and checks the expression. The error gives the line and the column of each mistake.
func (c *CEL) compile(a *asked) (*cel.Env, *cel.Ast, error) {
	env, err := cel.NewEnv(slices.Concat(a.functions(), []cel.EnvOption{
		ext.NativeTypes(
			reflect.TypeFor[celGroup](),
			reflect.TypeFor[celMetric](),
			reflect.TypeFor[celMessage](),
			reflect.TypeFor[celWrites](),
			reflect.TypeFor[celAudited](),
			reflect.TypeFor[celReviewed](),
			reflect.TypeFor[celWebhookAnswer](),
			ext.ParseStructTags(true),
		),
		cel.CrossTypeNumericComparisons(true),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals()),
	})...)
	if err != nil {
		return nil, nil, err
	}
	compiled, issues := env.Compile(c.Expression)
	var errs []error
	for _, e := range issues.Errors() {
		at := e.Location
		errs = append(
			errs,
			fmt.Errorf("expression, line %d, column %d: %s", at.Line(), at.Column()+1, e.Message),
		)
	}
	if len(errs) == 0 && compiled.OutputType() != cel.BoolType {
		is := compiled.OutputType()
		errs = append(
			errs,
			fmt.Errorf("expression, line 1, column 1: it is a %s (want a bool)", is),
		)
	}
	return env, compiled, errors.Join(errs...)
}

// Eval evaluates the expression over the evidence of the window. Missing data is a CEL error, so && and ||
// short-circuit past it exactly as Kleene logic would.
func (c *CEL) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.Expression)
	if !ok {
		return q.Finding
	}
	a := &asked{Question: q, answers: map[string]ref.Val{}}
	env, compiled, err := c.compile(a)
	if err != nil {
		return q.Unknown(check.Doubt(check.BadCheck, "%w", err))
	}
	program, err := env.Program(compiled, cel.CostLimit(maxCost))
	if err != nil {
		return q.Unknown(check.Doubt(check.BadCheck, "%w", err))
	}
	a.adapter = env.CELTypeAdapter()
	out, _, err := program.Eval(cel.NoVars())
	if err != nil {
		if _, ok := errors.AsType[noAnswer](err); !ok {
			err = check.Doubt(check.BadCheck, "%w", err) // such as an index that isn't there, or too much work
		}
		return q.Unknown(err)
	}
	return q.Answer(check.Of(out == types.True), strings.Join(a.said, "; "))
}

// asked answers the calls of an expression's functions, and reads the evidence once for calls with the same arguments.
// An expression that is only compiled has a nil asked. Without a question, asked answers as if nothing had been there.
type asked struct {
	*question.Question
	adapter types.Adapter
	answers map[string]ref.Val
	said    []string
}

// noAnswer is the error of a function that the evidence doesn't answer. All other errors are the expression's own.
type noAnswer struct{ error }

func (n noAnswer) Unwrap() error { return n.error }
