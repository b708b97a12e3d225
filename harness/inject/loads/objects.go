package loads

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/inject/manifest"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Load, kinds.Kind[load.Load]{
		Name: "objects",
		Doc: "Requests about objects that the scenario writes down: they are created, applied, patched, deleted or " +
			"evicted.\n\n" +
			"Each round goes through the manifests `count` times, in order, `concurrency` requests at a time. A word in " +
			"a manifest is replaced in each request: $(arm) by the arm's name, and $(n) by the number of the pass " +
			"through the manifests, which goes on counting over the rounds. Each request is sent once, and its answer is " +
			"recorded, whatever it is. A round has begun once a request was carried out, or once an eviction was " +
			"refused with 429.\n\n" +
			"An object without a namespace that needs one is in relapse-<name>-<arm>, which the load makes. Objects " +
			"that are created or applied get the labels relapse.dev/run and relapse.dev/load.\n\n" +
			"With `stored`, the object is written into etcd past the API server, as it may stand there since an " +
			"earlier version: as JSON, without defaults, and without any check. It gets a UID and a time of " +
			"creation if it has none. An object that was written is then read through the API server. If the API " +
			"server doesn't serve it, the load fails: the object's key must be another one.",
		Example: "name: old-service\nkind: objects\ntarget: {mode: all, selector: {component: kube-apiserver}}\n" +
			"spec:\n  verb: apply\n  stored: true\n  rounds: 20\n  pause: 2s\n  manifests:\n" +
			"    - {apiVersion: v1, kind: Service, metadata: {name: old}, spec: {clusterIP: None, selector: {app: old}}}\n",
		New: func() load.Load {
			return &Objects{
				Count:       1,
				Concurrency: 1,
				Rounds:      1,
				Timeout:     metav1.Duration{Duration: 30 * time.Second},
			}
		},
	})
}

// Objects sends requests about objects.
type Objects struct {
	manifest.Ask
	Count       int             `json:"count,omitzero" jsonschema:"passes through the manifests in each round, at least 1"`
	Concurrency int             `json:"concurrency,omitzero" jsonschema:"requests at a time, at least 1; above 1, the order of the manifests isn't kept"`
	Rate        float64         `json:"rate,omitzero" jsonschema:"requests a second at most; default: 0, which has no limit"`
	Timeout     metav1.Duration `json:"timeout,omitzero" jsonschema:"how long a request waits for its answer, above 0"`
	Rounds      int             `json:"rounds,omitzero" jsonschema:"how often all this is done, at least 1"`
	Pause       metav1.Duration `json:"pause,omitzero" jsonschema:"time from the end of a round to the next; default: 0s"`
}

// Makes returns the kinds of artifacts that the load records: the calls and their summary.
func (*Objects) Makes() []bundle.Kind { return []bundle.Kind{bundle.Calls, bundle.LoadSummary} }

// Validate refuses what no API server would understand, and a load that asks for nothing.
func (l *Objects) Validate() error {
	switch {
	case l.Count < 1:
		return fmt.Errorf("count is %d (want at least 1)", l.Count)
	case l.Concurrency < 1:
		return fmt.Errorf("concurrency is %d (want at least 1)", l.Concurrency)
	case l.Rate < 0:
		return fmt.Errorf("rate is %g requests a second (want 0 for no limit, or more)", l.Rate)
	case l.Timeout.Duration <= 0:
		return fmt.Errorf("timeout is %s (want above 0)", l.Timeout.Duration)
	case l.Rounds < 1:
		return fmt.Errorf("rounds is %d (want at least 1)", l.Rounds)
	case l.Pause.Duration < 0:
		return fmt.Errorf("pause is %s (want 0 or more)", l.Pause.Duration)
	}
	return l.Ask.Validate(manifest.Arm, manifest.Number)
}

// Describe returns in words what the load asks for.
func (l *Objects) Describe() string {
	out := l.Ask.Describe()
	if l.Count > 1 {
		out = fmt.Sprintf("%d times: %s", l.Count, out)
	}
	if l.Rounds > 1 {
		out = fmt.Sprintf("%d rounds, %s apart, of: %s", l.Rounds, l.Pause.Duration, out)
	}
	return out
}

// Apart reports whether all objects are the arm's own.
func (l *Objects) Apart() bool { return l.Manifests.Apart() }

// Prepare makes the namespace, if an object may need it.
func (l *Objects) Prepare(ctx context.Context, t load.Target) error {
	if !l.Manifests.Homeless() {
		return nil
	}
	c, err := newClient(t)
	if err != nil {
		return err
	}
	err = insist(ctx, time.Minute, func(ctx context.Context) error {
		return c.makeNamespace(ctx, manifest.NamespaceOf(t.Name, t.Arm))
	})
	if err != nil {
		return fmt.Errorf("preparing the load %s: %w", t.Name, err)
	}
	return nil
}

// Run sends the requests. An error means that evidence could not be written, or that a stored object isn't served.
func (l *Objects) Run(ctx context.Context, t load.Target, w *bundle.Writer) error {
	c, err := manifest.NewClient(t.Cluster, t.Run, t.Name, t.Arm)
	if err != nil {
		return err
	}
	calls := l.Count * len(l.Manifests)
	sum := bundle.Load{Name: t.Name, Way: l.Ask.Describe(), Bytes: l.Manifests.Size()}
	o := &sender{Objects: l, Client: c, t: t}
	err = inRounds(ctx, t, w, sum, schedule{rounds: l.Rounds, calls: calls, rate: l.Rate,
		round: func(n int, began func()) <-chan bundle.Call {
			if n > 1 {
				_ = wait(ctx, l.Pause.Duration) // the end of ctx is seen next
			}
			return paced(ctx, calls, l.Rate, l.Concurrency, func(i int) bundle.Call {
				one := o.call(ctx, n, (n-1)*l.Count+i/len(l.Manifests), l.Manifests[i%len(l.Manifests)])
				if bundle.Success(one.Code) || l.Verb == manifest.Evict && one.Code == http.StatusTooManyRequests {
					began()
				}
				return one
			})
		}})
	return errors.Join(err, o.unserved)
}

// sender is a load that runs.
type sender struct {
	*Objects
	*manifest.Client
	t load.Target

	mu       sync.Mutex
	served   bool  // whether the API server was seen to serve what was stored
	unserved error // why it isn't served
}

// call sends one request and waits for its answer. number is that of the pass through the manifests.
func (a *sender) call(ctx context.Context, round, number int, m manifest.Template) bundle.Call {
	limited, cancel := context.WithTimeoutCause(ctx, a.Timeout.Duration, errTimeUp)
	defer cancel()
	one := bundle.Call{Load: a.t.Name, Round: round, Time: time.Now().UTC()}
	r, err := a.Request(
		limited,
		a.Ask,
		m,
		manifest.Words{manifest.Arm: a.t.Arm, manifest.Number: number},
	)
	one.Verb, one.Path = r.Verb, r.Path
	if err == nil {
		var answer manifest.Answer
		answer, err = a.Do(limited, r)
		one.Code, one.Reason = answer.Code, string(answer.Reason)
	}
	one.Done = time.Now().UTC()
	if err != nil {
		whole := one.Code != 0 && !bundle.Success(one.Code) // an answer of success with an error was cut off
		one.Error, one.GaveUp = err.Error(), !whole && limited.Err() != nil
		one.LoadEnded = one.GaveUp && !errors.Is(context.Cause(limited), errTimeUp)
	} else if a.Stored && (a.Verb != manifest.Delete && a.Verb != manifest.Patch) {
		a.see(limited, r)
	}
	return one
}

// see looks once whether the API server serves what was stored: a wrong key would be a load without an effect. An API
// server that can't be asked says nothing about the key.
func (a *sender) see(ctx context.Context, r manifest.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.served || a.unserved != nil {
		return
	}
	err := a.Served(ctx, r)
	if a.served = err == nil; apierrors.IsNotFound(err) {
		a.unserved = fmt.Errorf("load %s: %w", a.t.Name, err)
	}
}
