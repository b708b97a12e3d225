package loads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Load, kinds.Kind[load.Load]{
		Name: "requests",
		Doc: "Requests to any path of the API, a number of them in each round.\n\n" +
			"The calls of a round are sent at once, or at a rate, or so that only a number of them are under way. The " +
			"round ends with the last answer, and the next round begins. $(n) is the number of the call, from 0 over " +
			"all rounds, and $(arm) the arm's name.\n\n" +
			"timeout is part of the request (?timeout=): the API server ends a late request with 504 while the client " +
			"still waits for the answer. cutAfter is the client's: it ends each call after that time, whatever of the " +
			"answer has come. A watch is held open for as long. Without either, a call is given up after 1m.\n\n" +
			"A round has begun once the API server has begun an answer of success, has answered with 504 to a request " +
			"with a timeout, or has got a request that was then cut off. Every call is recorded with its code, its " +
			"reason and how long it took, and none fails the load. If the API server doesn't answer at all in a round, " +
			"the next round waits 1s. If the path is in the namespace relapse-<name>, the load makes that namespace " +
			"before the steady state.",
		Example: "name: creations\nkind: requests\ntarget: {mode: all, selector: {component: kube-apiserver}}\n" +
			"spec:\n  method: POST\n  path: /api/v1/namespaces/relapse-creations/configmaps\n" +
			"  body: {apiVersion: v1, kind: ConfigMap, metadata: {name: item-$(n)}}\n" +
			"  timeout: 2s\n  calls: 6\n  rounds: 30\n",
		New: func() load.Load { return &Requests{Method: http.MethodGet, Calls: 1, Rounds: 1} },
	})
}

// Requests sends requests of one kind.
type Requests struct {
	Method   string            `json:"method,omitzero" jsonschema:"HTTP method: GET, HEAD, POST, PUT, PATCH or DELETE"`
	Path     string            `json:"path" placeholders:"n,arm" jsonschema:"path of the request with its query: /api/v1/pods?watch=1"`
	Headers  map[string]string `json:"headers,omitempty" placeholders:"n,arm" jsonschema:"headers of the request, in place of those that every request has; PATCH needs a Content-Type"`
	Body     json.RawMessage   `json:"body,omitempty" placeholders:"n,arm" jsonschema:"what is sent: a value that is sent as JSON, in which $(n) is a text, or a text that is sent as it is, in which $(n) may be a number. Default: nothing"`
	Timeout  metav1.Duration   `json:"timeout,omitzero" jsonschema:"time limit that the request asks of the API server (?timeout=): whole seconds, 1s to 30s. Default: none"`
	CutAfter metav1.Duration   `json:"cutAfter,omitzero" jsonschema:"time after which the client ends each call, and for which it holds a watch open. Default: only a call without an answer is given up"`
	Calls    int               `json:"calls,omitzero" jsonschema:"calls in each round; at least 1"`
	Rounds   int               `json:"rounds,omitzero" jsonschema:"number of rounds, one after another; at least 1"`
	Rate     float64           `json:"rate,omitempty" jsonschema:"calls a second. Default: all at once"`
	Parallel int               `json:"parallel,omitempty" jsonschema:"how many calls may be under way at once; a further one waits. Default: any number"`
}

// late is how long an answer is waited for after the request's own time limit.
const late = 30 * time.Second

var methods = []string{
	http.MethodGet,
	http.MethodHead,
	http.MethodPost,
	http.MethodPut,
	http.MethodPatch,
	http.MethodDelete,
}

// Makes returns the kinds of artifacts that the load records: the calls and their summary.
func (*Requests) Makes() []bundle.Kind { return []bundle.Kind{bundle.Calls, bundle.LoadSummary} }

// Validate refuses a load that asks for nothing, requests that can't be sent as they are, and a time limit that the API
// server would change.
func (l *Requests) Validate() error {
	bare := l.Method == http.MethodGet || l.Method == http.MethodHead
	typed := slices.ContainsFunc(slices.Collect(maps.Keys(l.Headers)),
		func(name string) bool { return strings.EqualFold(name, "Content-Type") })
	switch d := l.Timeout.Duration; {
	case !slices.Contains(methods, l.Method):
		return fmt.Errorf("method is %q (want one of %s)", l.Method, strings.Join(methods, ", "))
	case string(l.Body) == "null":
		return errors.New("body is null (want a value, a text, or no body at all)")
	case bare && l.Body != nil:
		return fmt.Errorf("body stands beside method %s, which sends none", l.Method)
	case l.Method == http.MethodPatch && !typed:
		return errors.New(
			"headers has no Content-Type, which says what kind of patch it is (want for example " +
				"Content-Type: application/merge-patch+json)",
		)
	case l.Calls < 1 || l.Rounds < 1:
		return fmt.Errorf("calls is %d and rounds %d (want at least 1)", l.Calls, l.Rounds)
	case l.Rate < 0 || l.Parallel < 0:
		return fmt.Errorf("rate is %g and parallel %d (want 0 or more)", l.Rate, l.Parallel)
	case d != 0 && (d < time.Second || d > 30*time.Second || d%time.Second != 0):
		return fmt.Errorf("timeout is %s (want whole seconds, from 1s to 30s)", d)
	case l.CutAfter.Duration < 0:
		return fmt.Errorf("cutAfter is %s (want above 0)", l.CutAfter.Duration)
	}
	_, err := l.url(&url.URL{}, l.values(0, "arm"))
	return err
}

// Describe returns in words what the load asks for.
func (l *Requests) Describe() string {
	out := fmt.Sprintf("%d rounds of %d calls", l.Rounds, l.Calls)
	switch {
	case l.Rate > 0:
		out += fmt.Sprintf(" at %g a second", l.Rate)
	case l.Parallel == 0:
		out += " at once"
	}
	if l.Parallel > 0 {
		out += fmt.Sprintf(", at most %d under way", l.Parallel)
	}
	out += ": " + l.Method + " " + l.Path
	if l.Timeout.Duration > 0 {
		out += fmt.Sprintf(", each within %s", l.Timeout.Duration)
	}
	if l.CutAfter.Duration > 0 {
		out += fmt.Sprintf(", cut off by the client after %s", l.CutAfter.Duration)
	}
	return out
}

// values are what the placeholders of a call stand for.
func (*Requests) values(
	n int,
	arm string,
) map[string]any {
	return map[string]any{"n": n, "arm": arm}
}

// url returns where a call goes, from the API server's own address.
func (l *Requests) url(base *url.URL, values map[string]any) (*url.URL, error) {
	path := kinds.ExpandText(l.Path, values)
	ref, err := url.Parse(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("path is %q: %w", path, err)
	case !strings.HasPrefix(path, "/") || ref.Host != "" || ref.Fragment != "":
		return nil, fmt.Errorf(
			"path is %q (want one of the API, with its query: /api/v1/pods?watch=1)",
			path,
		)
	case l.Timeout.Duration > 0 && ref.Query().Has("timeout"):
		return nil, fmt.Errorf(
			"path is %q, which has a timeout beside the field timeout (want one of them)",
			path,
		)
	}
	to, prefix := *base, strings.TrimSuffix(base.Path, "/")
	to.Path, to.RawPath, to.RawQuery = prefix+ref.Path, "", ref.RawQuery
	if ref.RawPath != "" {
		to.RawPath = prefix + ref.RawPath
	}
	return &to, nil
}

// Prepare makes the load's own namespace, if the path is in it.
func (l *Requests) Prepare(ctx context.Context, t load.Target) error {
	namespace := "relapse-" + t.Name
	if path, _, _ := strings.Cut(l.Path, "?"); !strings.Contains(path+"/", "/namespaces/"+namespace+"/") {
		return nil
	}
	c, err := newClient(t)
	if err != nil {
		return err
	}
	err = insist(
		ctx,
		time.Minute,
		func(ctx context.Context) error { return c.makeNamespace(ctx, namespace) },
	)
	if err != nil {
		return fmt.Errorf("preparing the load %s: %w", t.Name, err)
	}
	return nil
}

// Run makes the rounds. An error means that evidence could not be written, or that a request can't be made.
func (l *Requests) Run(ctx context.Context, t load.Target, w *bundle.Writer) error {
	c, err := newClient(t)
	if err != nil {
		return err
	}
	base, _, err := rest.DefaultServerUrlFor(t.Cluster.RESTConfig())
	if err != nil {
		return fmt.Errorf("making the address of load %s: %w", t.Name, err)
	}
	first, err := l.request(base, 0, t.Arm)
	if err != nil {
		return fmt.Errorf("making a request of load %s: %w", t.Name, err)
	}
	sum := bundle.Load{Name: t.Name, Way: l.Method + " " + l.Path, Bytes: int64(len(first.body))}
	return inRounds(ctx, t, w, sum, schedule{rounds: l.Rounds, calls: l.Calls, rate: l.Rate,
		round: func(n int, began func()) <-chan bundle.Call {
			return paced(ctx, l.Calls, l.Rate, l.Parallel, func(i int) bundle.Call {
				return l.call(
					ctx,
					c,
					base,
					bundle.Call{Load: c.Name, Round: n},
					(n-1)*l.Calls+i,
					began,
				)
			})
		}})
}

// call makes the i-th call.
func (l *Requests) call(ctx context.Context, c *client, base *url.URL, one bundle.Call, i int,
	began func()) bundle.Call {
	one.Verb, one.Path = l.Method, kinds.ExpandText(l.Path, l.values(i, c.Arm))
	r, err := l.request(base, i, c.Arm)
	if err != nil {
		one.Time = time.Now().UTC()
		one.Done, one.Error = one.Time, err.Error()
		return one
	}
	r.opened = began
	within := asking
	switch {
	case l.CutAfter.Duration > 0:
		within = l.CutAfter.Duration
	case l.Timeout.Duration > 0:
		within = l.Timeout.Duration + late
	}
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
		sent.Store(info.Err == nil)
	}})
	one = c.answer(ctx, one, within, r)
	timedOut := l.Timeout.Duration > 0 && one.Code == http.StatusGatewayTimeout
	cutOff := l.CutAfter.Duration > 0 && one.GaveUp && !one.LoadEnded && sent.Load()
	if timedOut || cutOff {
		began()
	}
	return one
}

// request returns the i-th request.
func (l *Requests) request(base *url.URL, i int, arm string) (r request, err error) {
	values := l.values(i, arm)
	r.method, r.header = l.Method, map[string]string{}
	if r.to, err = l.url(base, values); err != nil {
		return r, err
	}
	if l.Timeout.Duration > 0 {
		query := "timeout=" + l.Timeout.Duration.String()
		if r.to.RawQuery != "" {
			query = r.to.RawQuery + "&" + query
		}
		r.to.RawQuery = query
	}
	for name, value := range l.Headers {
		r.header[name] = kinds.ExpandText(value, values)
	}
	var text string
	switch {
	case l.Body == nil:
	case json.Unmarshal(l.Body, &text) == nil:
		r.body = []byte(kinds.ExpandText(text, values))
	default:
		r.body, err = kinds.Expand(l.Body, values)
	}
	return r, err
}
