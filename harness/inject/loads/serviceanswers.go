package loads

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Load, kinds.Kind[load.Load]{
		Name: "serviceAnswers",
		Doc: "A new service that a node must be able to call: it shows that the node's service proxy works, where " +
			"counters only show that it runs.\n\n" +
			"The service is of type NodePort, without a selector. Its endpoints are those of the API servers, so the " +
			"servers that answer are there already. The target must choose one node. That node sends HTTPS requests " +
			"to /readyz until an API server answers 200: first to the service's cluster IP, then to its node port at " +
			"nodePortAt. Any other answer doesn't count: before there is a rule for the address, a call leaves the " +
			"node, and an unknown server may answer. The service stays, in the namespace relapse-<name>-<arm>.",
		Example: "name: late\nkind: serviceAnswers\ntarget: {mode: all, selector: {component: kube-proxy}}\nspec: " +
			"{timeout: 15s, nodePortAt: 127.0.0.1}\n",
		Tested: `{"timeout":"1s","nodePortAt":"127.0.0.1"}`,
		New:    func() load.Load { return &ServiceAnswers{Timeout: metav1.Duration{Duration: 15 * time.Second}} },
	})
}

// ServiceAnswers makes a node call a new service.
type ServiceAnswers struct {
	Timeout    metav1.Duration `json:"timeout" refers:"stretch" jsonschema:"time limit of each step, above 0: creating the service, the answer at its cluster IP, the answer at its node port"`
	NodePortAt string          `json:"nodePortAt,omitempty" jsonschema:"IP address of the node at which the node port is called; default: none, and the node port is not called"`
}

// oneCall is how long one try may take, in seconds.
const oneCall = "2"

// Makes returns the kind of artifact that the load records: the probe's record.
func (*ServiceAnswers) Makes() []bundle.Kind { return []bundle.Kind{bundle.WorkProbe} }

// Probe returns true: nothing can come after it.
func (*ServiceAnswers) Probe() bool { return true }

// OnNode returns true: one more service affects no arm, and only one node calls it.
func (*ServiceAnswers) OnNode() bool { return true }

// Validate refuses a probe that nothing could pass.
func (l *ServiceAnswers) Validate() error {
	if l.Timeout.Duration <= 0 {
		return fmt.Errorf("timeout is %s (want above 0)", l.Timeout.Duration)
	}
	if _, err := netip.ParseAddr(l.NodePortAt); l.NodePortAt != "" && err != nil {
		return fmt.Errorf("nodePortAt is %q (want an IP address)", l.NodePortAt)
	}
	return nil
}

// Describe returns in words what the load asks for.
func (l *ServiceAnswers) Describe() string {
	return fmt.Sprintf(
		"a new service must answer a call from the node within %s",
		l.Timeout.Duration,
	)
}

// Prepare makes the namespace.
func (l *ServiceAnswers) Prepare(ctx context.Context, t load.Target) error {
	s, err := newServices(t)
	if err != nil {
		return err
	}
	err = insist(
		ctx,
		time.Minute,
		func(ctx context.Context) error { return s.makeNamespace(ctx, s.namespace) },
	)
	if err != nil {
		return fmt.Errorf("preparing the load %s: %w", t.Name, err)
	}
	return nil
}

// Run creates the service and makes the node call it.
func (l *ServiceAnswers) Run(ctx context.Context, t load.Target, w *bundle.Writer) error {
	s, err := newServices(t)
	if err != nil {
		return err
	}
	if len(t.Nodes) != 1 {
		return fmt.Errorf(
			"load %s: its target chooses %d nodes in %s (want one)",
			t.Name,
			len(t.Nodes),
			t.Arm,
		)
	}
	x, err := cluster.Commands(t.Nodes[0])
	if err != nil {
		return fmt.Errorf("load %s: %w", t.Name, err)
	}
	out := newProbe(t, "a new service that "+t.Nodes[0].Name()+" calls")
	var made *corev1.Service
	err = out.step(1, "created", func() (what string, err error) {
		err = insist(ctx, l.Timeout.Duration, func(ctx context.Context) error {
			made, err = s.late(ctx)
			return err
		})
		if err == nil {
			what = fmt.Sprintf(
				"%s, node port %d",
				made.Spec.ClusterIP,
				made.Spec.Ports[0].NodePort,
			)
		}
		return what, err
	})
	if err == nil {
		at := net.JoinHostPort(made.Spec.ClusterIP, "443")
		err = out.step(
			1,
			"answers",
			func() (string, error) { return called(ctx, x, at, l.Timeout.Duration) },
		)
	}
	if err == nil && l.NodePortAt != "" {
		at := net.JoinHostPort(l.NodePortAt, strconv.Itoa(int(made.Spec.Ports[0].NodePort)))
		err = out.step(1, "answers at its node port",
			func() (string, error) { return called(ctx, x, at, l.Timeout.Duration) })
	}
	return out.record(ctx, w, err)
}

// late makes the service, with the endpoints of the API servers, and returns it as the API server has it.
func (s *services) late(ctx context.Context) (*corev1.Service, error) {
	servers, err := s.typed.CoreV1().
		Endpoints(metav1.NamespaceDefault).
		Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if len(servers.Subsets) == 0 || len(servers.Subsets[0].Ports) == 0 {
		return nil, errors.New("the service of the API servers has no endpoints")
	}
	mine := &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: "late"},
		Subsets:    servers.Subsets,
	}
	if err := s.makeService(ctx, s.namespace, mine, corev1.ServiceTypeNodePort, 443); err != nil {
		return nil, err
	}
	return s.typed.CoreV1().Services(s.namespace).Get(ctx, mine.Name, metav1.GetOptions{})
}

// readyCode is what a ready API server answers, even to a client that it doesn't know.
const readyCode = "200"

// called makes a node ask by HTTPS until an API server answers that it is ready.
func called(
	ctx context.Context,
	from cluster.Execer,
	at string,
	timeout time.Duration,
) (string, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	last := "" // the code that curl printed last: 000 is no answer
	for {
		out, err := from.Exec(limited, nil, "curl", "--silent", "--insecure", "--max-time", oneCall, "--output",
			"/dev/null", "--write-out", "%{http_code}", "https://"+at+"/readyz")
		code := strings.TrimSpace(string(out))
		switch {
		case err == nil && code == readyCode:
			return fmt.Sprintf("%s answers with %s", at, code), nil
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case limited.Err() != nil && last != "":
			return "", fmt.Errorf(
				"%w: %s doesn't answer with %s within %s, but with %s",
				errIdle,
				at,
				readyCode,
				timeout,
				last,
			)
		case limited.Err() != nil:
			return "", fmt.Errorf("the node could not be made to call %s: %w", at, err)
		}
		if len(code) == len(readyCode) {
			last = code
		}
		_ = wait(limited, 500*time.Millisecond)
	}
}
