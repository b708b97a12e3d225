// Package kinds has the one kind of the scenario listener-busy-wait: the fault that puts pods into a state by an HTTP
// request, and takes them out of it by another.
package kinds

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/faults"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "podState",
		Doc: "Pods that one HTTP request puts into a state and another takes out of it, such as a server that waits " +
			"for its first client.\n\n" +
			"The harness asks all running pods on the target's nodes whose label app.kubernetes.io/name is app. The " +
			"requests go through the API server's pod proxy. If plain processes stand in for the pods, the harness " +
			"asks the processes directly. PUT on path begins the state. GET on path answers 200 while the state " +
			"lasts, and 404 otherwise. The request that ends the state is a GET; checks judge its answer. A pod that " +
			"no longer answers is in no state: the subject's evidence shows what became of the pod. The fault has no " +
			"time limit: the state ends with its pod.",
		Example: "name: no-client\nkind: podState\ntarget: {mode: all, selector: {nodes: [worker]}}\nspec:\n  app: " +
			"listener\n  port: 8080\n  path: /listener\n  end: {scheme: https, port: 8443, path: /healthz}\n",
		Tested: `{"app":"subject","port":8080,"path":"/state","end":{"scheme":"https","port":8443,"path":"/end"}}`,
		New:    func() fault.Fault { return &PodState{} },
	})
}

// PodState puts pods into a state.
type PodState struct {
	App  string     `json:"app" derives:"subject" jsonschema:"value of the pods' label app.kubernetes.io/name"`
	Port int        `json:"port" jsonschema:"TCP port at which the pods serve the path of the state, by HTTP"`
	Path string     `json:"path" jsonschema:"path of the state: /listener"`
	End  PodRequest `json:"end" jsonschema:"the request that ends the state"`
}

// PodRequest is an HTTP request to a pod.
type PodRequest struct {
	Scheme string `json:"scheme,omitempty" jsonschema:"http or https; default: http; any certificate is accepted"`
	Port   int    `json:"port"`
	Path   string `json:"path"`
}

// podStateSeen is how long a change may take to be observed, podAnswers how long an answer may take.
const podStateSeen, podAnswers = 30 * time.Second, 10 * time.Second

// Needs returns what the fault requires: nothing but the API.
func (*PodState) Needs() fault.Needs { return fault.Needs{} }

// Validate refuses an empty name, and ports, paths and schemes that make no request.
func (f *PodState) Validate() error {
	var errs []error
	for what, r := range map[string]PodRequest{"": {Port: f.Port, Path: f.Path}, "end.": f.End} {
		if r.Port < 1 || r.Port > 65535 || !strings.HasPrefix(r.Path, "/") {
			errs = append(errs, fmt.Errorf("%sport is %d and %spath %q (want a TCP port and a path: /listener)", what,
				r.Port, what, r.Path))
		}
	}
	if s := f.End.Scheme; f.App == "" || s != "" && s != "http" && s != "https" {
		errs = append(
			errs,
			fmt.Errorf("app is %q and end.scheme %q (want a name; http or https)", f.App, s),
		)
	}
	return errors.Join(errs...)
}

// Inject puts the pods of each node into the state and returns when that was seen. A pod that doesn't get into the
// state has reacted to the request, perhaps by its end. That is a warning, unless no pod gets into the state.
func (f *PodState) Inject(ctx context.Context, t fault.Target) error {
	var seen atomic.Int64
	err := f.onPods(ctx, t, func(ctx context.Context, p asked) error {
		code, err := p.ask(ctx, http.MethodPut, PodRequest{Port: f.Port, Path: f.Path})
		if err == nil && code >= 300 && code != http.StatusServiceUnavailable {
			err = fmt.Errorf("PUT %s is answered with %d", f.Path, code)
		}
		if err != nil {
			return err
		}
		switch err = f.await(ctx, p, http.StatusOK); {
		case err == nil:
			seen.Add(1)
			faults.Emit(t, event.FaultSeen, p.onNode(), "%s is in the state", p)
		case errors.Is(err, errNotSeen):
			faults.Emit(t, event.Warning, p.onNode(), "%s: %v", p, err)
			return nil
		}
		return err
	})
	if err == nil && seen.Load() == 0 {
		return fmt.Errorf("%s: no pod of %s gets into the state", t.Name, f.App)
	}
	return err
}

// Recover ends the state and returns when that was seen. A pod that isn't in the state is left alone. A pod that
// refuses the request which ends the state has had its client: that is a warning.
func (f *PodState) Recover(ctx context.Context, t fault.Target) error {
	return f.onPods(ctx, t, func(ctx context.Context, p asked) error {
		code, err := p.ask(ctx, http.MethodGet, PodRequest{Port: f.Port, Path: f.Path})
		if err == nil && code == http.StatusOK {
			code, err = p.ask(ctx, http.MethodGet, f.End)
		}
		if err == nil {
			err = f.await(ctx, p, http.StatusNotFound)
		}
		switch {
		case err == nil:
			faults.Emit(t, event.FaultGone, p.onNode(), "%s is not in the state", p)
		case errors.Is(err, errNotSeen) && code == http.StatusServiceUnavailable:
			faults.Emit(
				t,
				event.Warning,
				p.onNode(),
				"%s was asked for what ends the state: %v",
				p,
				err,
			)
			return nil
		}
		return err
	})
}

// errNotSeen says that a change of a pod was not observed.
var errNotSeen = fmt.Errorf("the change was not seen within %s", podStateSeen)

// await asks for the state's path until the answer has the code want, or until there was no answer three times in a
// row.
func (f *PodState) await(ctx context.Context, p asked, want int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, podStateSeen, errNotSeen)
	defer cancel()
	refused := 0
	_, err := faults.Await(ctx, func(ctx context.Context) (bool, string) {
		code, err := p.ask(ctx, http.MethodGet, PodRequest{Port: f.Port, Path: f.Path})
		if err != nil {
			return false, err.Error()
		}
		if refused++; code != http.StatusServiceUnavailable {
			refused = 0
		}
		return code == want || refused >= faults.Refusals, fmt.Sprintf("GET %s is answered with %d", f.Path, code)
	})
	if refused >= faults.Refusals && want == http.StatusOK {
		return fmt.Errorf("%w: it doesn't answer any more", errNotSeen)
	}
	return err
}

// asked is a pod, or the plain process in its place.
type asked interface {
	fmt.Stringer
	onNode() cluster.Node
	// ask returns the code of the answer; 503 stands for none that could be had.
	ask(ctx context.Context, method string, r PodRequest) (code int, err error)
}

// pod is a pod that is asked by way of the API server.
type pod struct {
	client          kubernetes.Interface
	node            cluster.Node
	namespace, name string
}

func (p pod) String() string       { return p.namespace + "/" + p.name }
func (p pod) onNode() cluster.Node { return p.node }

// ask sends a request by way of the API server. The error is the API server's own, or the cause of ctx's end.
func (p pod) ask(ctx context.Context, method string, r PodRequest) (code int, err error) {
	name := fmt.Sprintf("%s:%d", p.name, r.Port)
	if r.Scheme != "" {
		name = r.Scheme + ":" + name
	}
	one, cancel := context.WithTimeout(ctx, podAnswers)
	defer cancel()
	err = p.client.CoreV1().
		RESTClient().
		Verb(method).
		Namespace(p.namespace).
		Resource("pods").
		Name(name).
		SubResource("proxy").
		Suffix(r.Path).
		MaxRetries(0).
		Do(one).
		StatusCode(&code).
		Error()
	var refused apierrors.APIStatus
	if errors.As(err, &refused) { // the result doesn't tell the code of an answer in plain text
		code = int(refused.Status().Code)
	}
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case one.Err() != nil:
		return http.StatusServiceUnavailable, nil
	case code == 0 || code == http.StatusInternalServerError:
		return code, err
	}
	return code, nil
}

// plain is a process that is asked directly.
type plain struct{ cluster.Addressed }

func (p plain) String() string       { return p.Name() + " of " + p.Node().Arm() }
func (p plain) onNode() cluster.Node { return p.Node() }

// direct sends requests to plain processes. Like the API server it verifies no certificates and follows no
// redirections: a request that is sent on to the listener would be its first client. It keeps no connections, because
// each would be a client that stays.
var direct = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // what is asked is known by its address

func (p plain) ask(ctx context.Context, method string, r PodRequest) (int, error) {
	one, cancel := context.WithTimeout(ctx, podAnswers)
	defer cancel()
	url := cmp.Or(
		r.Scheme,
		"http",
	) + "://" + net.JoinHostPort(
		p.Address(),
		strconv.Itoa(r.Port),
	) + r.Path
	req, err := http.NewRequestWithContext(one, method, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := direct.Do(req)
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case err != nil:
		return http.StatusServiceUnavailable, nil //nolint:nilerr // none could be had
	}
	return resp.StatusCode, resp.Body.Close()
}

// onPods acts on all pods of the target's nodes, on all nodes at once, and returns all errors. A node without a pod is
// an error.
func (f *PodState) onPods(
	ctx context.Context,
	t fault.Target,
	act func(context.Context, asked) error,
) error {
	if runner := t.Cluster.Abilities().Processes; runner != nil {
		return f.onProcesses(ctx, t, runner, act)
	}
	client, err := faults.APIClient(t)
	if err != nil {
		return err
	}
	return faults.Each(t.Nodes, func(n cluster.Node) error {
		list, err := client.CoreV1().Pods("").List(ctx,
			metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + f.App})
		if err != nil {
			return fmt.Errorf(
				"%s: looking for the pods of %s on %s: %w",
				t.Name,
				f.App,
				n.Name(),
				err,
			)
		}
		var errs []error
		found := false
		for _, p := range list.Items {
			if p.Spec.NodeName != n.Name() || p.Status.Phase != corev1.PodRunning {
				continue
			}
			found = true
			if err := act(ctx, pod{client, n, p.Namespace, p.Name}); err != nil {
				errs = append(
					errs,
					fmt.Errorf("%s: %s/%s on %s: %w", t.Name, p.Namespace, p.Name, n.Name(), err),
				)
			}
		}
		if !found {
			errs = append(
				errs,
				fmt.Errorf("%s: no pod of %s runs on %s", t.Name, f.App, n.Name()),
			)
		}
		return errors.Join(errs...)
	})
}

// onProcesses acts at once on all plain processes in the pods' place, and returns all errors. No process is an error.
func (f *PodState) onProcesses(ctx context.Context, t fault.Target, runner cluster.Runner,
	act func(context.Context, asked) error) error {
	list, err := runner.Workloads(ctx, f.App)
	if err != nil {
		return fmt.Errorf("%s: looking for the processes of %s: %w", t.Name, f.App, err)
	}
	if len(list) == 0 {
		return fmt.Errorf("%s: no process of %s runs", t.Name, f.App)
	}
	return faults.Each(list, func(k cluster.Addressed) error {
		p := plain{k}
		if err := act(ctx, p); err != nil {
			return fmt.Errorf("%s: %s: %w", t.Name, p, err)
		}
		return nil
	})
}
