package load

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Load, kinds.Kind[Load]{
		Name: "createConfigMaps",
		Doc: "Creations of small ConfigMaps, each with a time limit for the API server's answer.\n\n" +
			"Each round sends several creations at once, in the namespace relapse-<name>. The round ends with the " +
			"last answer, and the next round begins. The time limit is part of the request (?timeout=), so the API " +
			"server ends a late request with 504 while the client still waits for the answer. A round has begun once " +
			"the API server has accepted one of its requests or has answered one with 504. Every answer is recorded, " +
			"and none fails the load. If the API server doesn't answer at all in a round, the next round waits 1s.",
		Example: "name: creations\nkind: createConfigMaps\ntarget: {mode: all, selector: {component: " +
			"kube-apiserver}}\nspec: {calls: 6, rounds: 30, timeout: 2s}\n",
		New: func() Load {
			return &CreateConfigMaps{Calls: 6, Rounds: 30, Timeout: metav1.Duration{Duration: 2 * time.Second}}
		},
	})
}

// CreateConfigMaps creates ConfigMaps with a time limit.
type CreateConfigMaps struct {
	Calls   int             `json:"calls,omitzero" jsonschema:"requests in each round, sent at once; at least 1"`
	Rounds  int             `json:"rounds,omitzero" jsonschema:"number of rounds, one after another; at least 1"`
	Timeout metav1.Duration `json:"timeout,omitzero" jsonschema:"time limit of each request: whole seconds, 1s to 30s"`
}

// late is how long an answer is waited for after the request's own time limit.
const late = 30 * time.Second

// Makes returns the kinds of artifacts that the load records: the calls and their summary.
func (*CreateConfigMaps) Makes() []bundle.Kind {
	return []bundle.Kind{bundle.Calls, bundle.LoadSummary}
}

// Validate refuses a load that asks for nothing, and a time limit that the API server would change.
func (l *CreateConfigMaps) Validate() error {
	switch d := l.Timeout.Duration; {
	case l.Calls < 1:
		return fmt.Errorf("calls is %d (want at least 1)", l.Calls)
	case l.Rounds < 1:
		return fmt.Errorf("rounds is %d (want at least 1)", l.Rounds)
	case d < time.Second || d > 30*time.Second || d%time.Second != 0:
		return fmt.Errorf("timeout is %s (want whole seconds, from 1s to 30s)", d)
	}
	return nil
}

// Describe returns in words what the load asks for.
func (l *CreateConfigMaps) Describe() string {
	return fmt.Sprintf("%d rounds of %d ConfigMaps created at once, each within %s", l.Rounds, l.Calls,
		l.Timeout.Duration)
}

// Prepare makes the namespace.
func (l *CreateConfigMaps) Prepare(ctx context.Context, t Target) error {
	c, err := newClient(t)
	if err != nil {
		return err
	}
	err = insist(ctx, time.Minute, func(ctx context.Context) error { return c.makeNamespace(ctx, "relapse-"+t.Name) })
	if err != nil {
		return fmt.Errorf("preparing the load %s: %w", t.Name, err)
	}
	return nil
}

// Run makes the rounds. An error means that evidence could not be written.
func (l *CreateConfigMaps) Run(ctx context.Context, t Target, w *bundle.Writer) (err error) {
	c, err := newClient(t)
	if err != nil {
		return err
	}
	sum := bundle.Load{Name: t.Name, Way: "creations within " + l.Timeout.Duration.String(), Objects: l.Calls,
		Bytes: int64(len(body(0)))}
	took := func(code int) bool { return code/100 == 2 || code == http.StatusGatewayTimeout }
	return inRounds(ctx, t, w, sum, l.Rounds, took, func(n int) <-chan bundle.Call { return l.round(ctx, c, n) })
}

// round makes the calls of a round at once. The channel gets each call as it is answered.
func (l *CreateConfigMaps) round(ctx context.Context, c *client, n int) <-chan bundle.Call {
	out := make(chan bundle.Call, l.Calls)
	to := c.typed.CoreV1().RESTClient().Post().Namespace("relapse-"+c.Name).Resource("configmaps").
		Param("timeout", l.Timeout.Duration.String()).URL()
	var all sync.WaitGroup
	for i := range l.Calls {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, l.Timeout.Duration+late)
			defer cancel()
			one := bundle.Call{Load: c.Name, Round: n, Time: time.Now().UTC(), Verb: "CREATE", Path: to.Path}
			code, err := c.ask(ctx, http.MethodPost, to, body((n-1)*l.Calls+i))
			one.Code, one.Done = code, time.Now().UTC()
			if err != nil {
				one.Error, one.GaveUp = err.Error(), code == 0 && ctx.Err() != nil
			}
			out <- one
		})
	}
	go func() { all.Wait(); close(out) }()
	return out
}

// body returns the n-th ConfigMap as JSON.
func body(n int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"n":"%d"}}`, item(n), n)
}
