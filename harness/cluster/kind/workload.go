package kind

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// Workload finds the pod of a workload and returns its container as a component.
func (c *Cluster) Workload(ctx context.Context, w cluster.Workload) (cluster.Component, error) {
	out := &Workload{c: c, w: w}
	if _, err := out.find(ctx); err != nil {
		return nil, err
	}
	return out, nil
}

// Workload is a container of a pod that is an arm's own.
type Workload struct {
	c *Cluster
	w cluster.Workload

	mu   sync.Mutex
	pod  *pod  // as it was found last; nil after something failed, which may be because it was replaced
	node *Node // where it was found last
}

type pod struct {
	name, uid string
	node      *Node
}

// find returns the workload's pod. Several are an error: nobody could say which of them is meant.
func (w *Workload) find(ctx context.Context) (pod, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pod != nil {
		return *w.pod, nil
	}
	selector := url.QueryEscape("app.kubernetes.io/name=" + w.w.Name)
	a, err := w.c.get(ctx, "/api/v1/namespaces/"+w.w.Namespace+"/pods?labelSelector="+selector)
	if err != nil {
		return pod{}, fmt.Errorf("looking for the pod of %s in %s: %w", w.w.Name, w.w.Namespace, err)
	}
	defer a.Close()
	var list corev1.PodList
	if err := json.NewDecoder(a).Decode(&list); err != nil {
		return pod{}, fmt.Errorf("looking for the pod of %s in %s: %w", w.w.Name, w.w.Namespace, err)
	}
	alive := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	if len(alive) != 1 {
		return pod{}, fmt.Errorf("looking for the pod of %s in %s: there are %d, want 1", w.w.Name, w.w.Namespace,
			len(alive))
	}
	found := pod{name: alive[0].Name, uid: string(alive[0].UID)}
	for _, n := range w.c.nodes {
		if n.name == alive[0].Spec.NodeName {
			on := *n
			on.arm = w.w.Arm // its share of a node that is everyone's
			found.node = &on
		}
	}
	if found.node == nil {
		return pod{}, fmt.Errorf("pod %s of %s is on node %q, which is none of the cluster's", found.name,
			w.w.Namespace,
			alive[0].Spec.NodeName)
	}
	w.pod, w.node = &found, found.node
	return found, nil
}

// forget has the pod looked for again: what was asked of it failed.
func (w *Workload) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pod = nil
}

// Name returns the workload's name.
func (w *Workload) Name() string { return w.w.Name }

// Node returns where it was found last, as the arm's.
func (w *Workload) Node() cluster.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.node
}

// Get asks the container's first port through the API server's pod proxy.
func (w *Workload) Get(ctx context.Context, at string) (io.ReadCloser, error) {
	p, err := w.find(ctx)
	if err != nil {
		return nil, err
	}
	a, err := w.c.get(ctx, "/api/v1/namespaces/"+w.w.Namespace+"/pods/"+p.name+"/proxy/"+strings.TrimPrefix(at, "/"))
	if err != nil {
		w.forget()
		return nil, fmt.Errorf("asking %s of %s: %w", w.w.Name, w.w.Namespace, err)
	}
	return a, nil
}

// Logs gives CRI log lines of the container so far, and of those to come, over its restarts.
func (w *Workload) Logs(ctx context.Context) (io.ReadCloser, error) {
	p, err := w.find(ctx)
	if err != nil {
		return nil, err
	}
	return p.node.stream(ctx, "sh", "-c", `exec tail --quiet --lines=+1 --follow=name --retry "$1"/*.log`, "sh", w.logs(p))
}

func (w *Workload) logs(p pod) string {
	return "/var/log/pods/" + w.w.Namespace + "_" + p.name + "_" + p.uid + "/" + w.w.Name
}

// Signal sends to the container's process.
func (w *Workload) Signal(ctx context.Context, sig os.Signal) error {
	p, err := w.find(ctx)
	if err != nil {
		return err
	}
	return p.node.signal(ctx, sig, w.pid(p))
}

// Identity says that there is no process while the container is down. Restarts are the kubelet's, read from the names
// of its log files.
func (w *Workload) Identity(ctx context.Context, digest bool) (cluster.Identity, error) {
	p, err := w.find(ctx)
	if err != nil {
		return cluster.Identity{}, err
	}
	id, err := p.node.identity(ctx, digest, w.pid(p),
		`ls `+w.logs(p)+` | sed -n 's/^\([0-9]*\)\.log$/\1/p' | sort -n | tail -n 1`)
	if err != nil || id.PID == 0 {
		w.forget()
	}
	return id, err
}

// pid prints the id of the oldest process of the pod that runs the workload's program, or nothing if there is none. A
// control group has the pod's UID in its name, by systemd's driver with other dashes. It is asked every two seconds, so
// only processes of that name are looked at. One that can't be looked at though it is there is an error: whether it is
// the workload's is not known.
func (w *Workload) pid(p pod) string {
	const most = 15 // of a process's name, as the kernel keeps it
	comm := w.w.Name[:min(len(w.w.Name), most)]
	return `ended() { case "$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null)" in ''|Z*|X*) ;; *) exit 1 ;; esac; }
all=$(pgrep --exact '` + comm + `' || [ $? = 1 ]) || exit 1
for p in $(printf '%s\n' $all | sort -n); do
	program=$(readlink "/proc/$p/exe") || { ended "$p"; continue; }
	case "$program" in */` + w.w.Name + `) ;; *) continue ;; esac
	group=$(cat "/proc/$p/cgroup") || { ended "$p"; continue; }
	case "$group" in *'` + p.uid + `'*|*'` + strings.ReplaceAll(p.uid, "-", "_") + `'*) echo "$p"; exit 0 ;; esac
done`
}
