package processes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// workload is what a cluster's folder says about a workload that was started.
type workload struct {
	cluster.Workload
	IP    string `json:"ip"` // an address of the loopback interface that nobody else has
	Port  int    `json:"port"`
	Ready string `json:"ready"`
}

func (w workload) http() string { return net.JoinHostPort(w.IP, strconv.Itoa(w.Port)) }

// workloadsDir is the folder with a file for each workload of a cluster.
const workloadsDir = "workloads"

// processOf returns the supervisor's name for a workload: no component has the same, and no two workloads.
func processOf(w cluster.Workload) string { return w.Namespace + "_" + w.Name }

func workloadPath(home string, w cluster.Workload) string {
	return filepath.Join(home, workloadsDir, processOf(w)+".json")
}

// Run starts a workload with its own address, and returns once it is ready for work.
func (c *Cluster) Run(ctx context.Context, w cluster.Workload, p cluster.Process) error {
	if err := c.run(ctx, w, p); err != nil {
		return fmt.Errorf("running the %s of %s: %w", w.Name, w.Namespace, err)
	}
	return nil
}

func (c *Cluster) run(ctx context.Context, w cluster.Workload, p cluster.Process) error {
	if c.line == nil {
		return fmt.Errorf("another process made the cluster %s", c.name)
	}
	one := workload{Workload: w, Port: p.Port, Ready: p.Ready}
	if _, err := os.Stat(workloadPath(c.home, w)); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(errExists, err)
	}
	var err error
	if one.IP, err = freeAddress(p.Port); err != nil {
		return err
	}
	if p.ServiceAccount != "" {
		if p, err = c.withAccess(ctx, w, p); err != nil {
			return err
		}
	}
	k := c.workload(one)
	start := process{
		Name: k.process,
		Path: programPath(c.home, k.process),
		Logs: logs(c.home, k.namespace, k.n.name, k.name),
	}
	start.Args, start.Env = expand(p, one.IP)
	order, err := json.Marshal(start)
	if err != nil {
		return err
	}
	for _, dir := range []string{start.Logs, filepath.Join(c.home, workloadsDir)} {
		err = errors.Join(err, os.MkdirAll(dir, 0o700))
	}
	if err := errors.Join(err, placeProgram(start.Path, p.Program), writeJSON(workloadPath(c.home, w), one)); err != nil {
		return err
	}
	if err := c.line.order(orderRun + string(order)); err != nil {
		return c.supervisorFailed(err)
	}
	return k.answers(ctx, 1)
}

// withAccess returns the process with a kubeconfig of its service account, as a kubelet puts a token into a pod.
func (c *Cluster) withAccess(
	ctx context.Context,
	w cluster.Workload,
	p cluster.Process,
) (cluster.Process, error) {
	client, err := kubernetes.NewForConfig(c.rest)
	if err != nil {
		return p, err
	}
	seconds := int64(validFor / time.Second)
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}
	var token *authenticationv1.TokenRequest
	// A namespace's own account is made a moment after the namespace.
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, accountTime, true, func(ctx context.Context) (bool, error) {
		var err error
		token, err = client.CoreV1().ServiceAccounts(w.Namespace).CreateToken(ctx, p.ServiceAccount, request,
			metav1.CreateOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return p, fmt.Errorf(
			"getting a token of the service account %s: %w",
			p.ServiceAccount,
			err,
		)
	}
	text, err := kubeconfig(
		c.name,
		c.rest.Host,
		p.ServiceAccount,
		c.rest.CAData,
		clientcmdapi.AuthInfo{Token: token.Status.Token},
	)
	if err != nil {
		return p, err
	}
	at := filepath.Join(c.home, workloadsDir, processOf(w)+".kubeconfig")
	p.Env = maps.Clone(p.Env)
	if p.Env == nil {
		p.Env = map[string]string{}
	}
	p.Env[cluster.AccessVariable] = at
	return p, errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, text, 0o600))
}

// accountTime is how long a service account may take to be there.
const accountTime = 30 * time.Second

// expand returns a workload's arguments, with its variables filled in as a kubelet does it, and its environment.
func expand(p cluster.Process, ip string) (args, env []string) {
	all := maps.Clone(p.Env)
	if all == nil {
		all = map[string]string{}
	}
	for _, name := range p.Address {
		all[name] = ip
	}
	pairs := []string{"$$(", "$("}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		pairs = append(pairs, "$("+name+")", all[name])
		env = append(env, name+"="+all[name])
	}
	values := strings.NewReplacer(pairs...)
	for _, a := range p.Args {
		args = append(args, values.Replace(a))
	}
	return args, env
}

// freeAddress returns a random address of the loopback interface at which nobody listens on port. All of 127.0.0.0/8 is
// that interface's; 127.0.0.0/16 is left to others.
func freeAddress(port int) (string, error) {
	var last error
	for range portDraws {
		ip := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
		l, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		return ip, l.Close()
	}
	return "", fmt.Errorf(
		"no address of the loopback interface has port %d free, the last one tried: %w",
		port,
		last,
	)
}

// workload returns a workload as a component, whose node is the arm's copy of the cluster's node.
func (c *Cluster) workload(w workload) *Component {
	on := *c.node()
	on.arm = w.Arm
	return &Component{
		n:         &on,
		name:      w.Name,
		process:   processOf(w.Workload),
		namespace: w.Namespace,
		workload:  &w,
	}
}

// Workload returns a workload that was started, or an error if it wasn't.
func (c *Cluster) Workload(_ context.Context, w cluster.Workload) (cluster.Component, error) {
	var one workload
	if err := readJSON(workloadPath(c.home, w), &one); err != nil {
		return nil, fmt.Errorf("looking for the %s of %s: %w", w.Name, w.Namespace, err)
	}
	return c.workload(one), nil
}

// Workloads returns the workloads of a name that were started, in the order of their namespaces.
func (c *Cluster) Workloads(_ context.Context, name string) (out []cluster.Addressed, err error) {
	files, err := filepath.Glob(filepath.Join(c.home, workloadsDir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		var one workload
		if err := readJSON(file, &one); err != nil {
			return nil, err
		}
		if one.Name == name {
			out = append(out, c.workload(one))
		}
	}
	return out, nil
}

// Address returns a workload's own address, or "" for a component of the control plane, which has its own port instead.
func (k *Component) Address() string {
	if k.workload == nil {
		return ""
	}
	return k.workload.IP
}
