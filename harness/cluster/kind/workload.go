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
	out := &workload{c: c, w: w}
	if _, err := out.find(ctx); err != nil {
		return nil, err
	}
	return out, nil
}

// workload is the container of an arm, in a pod.
type workload struct {
	c *Cluster
	w cluster.Workload

	mu   sync.Mutex
	pod  *pod  // the one found last; nil after a failure, because the pod may have been replaced
	node *Node // where the pod was found last
}

type pod struct {
	name, uid string
	node      *Node
}

// find returns the workload's pod. If there are several, it returns an error, because nobody could say which is meant.
func (w *workload) find(ctx context.Context) (pod, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pod != nil {
		return *w.pod, nil
	}
	list, err := w.c.pods(ctx, w.w.Namespace, "app.kubernetes.io/name="+w.w.Name)
	if err != nil {
		return pod{}, fmt.Errorf(
			"looking for the pod of %s in %s: %w",
			w.w.Name,
			w.w.Namespace,
			err,
		)
	}
	alive := slices.DeleteFunc(
		list,
		func(p corev1.Pod) bool { return p.DeletionTimestamp != nil },
	)
	if len(alive) != 1 {
		return pod{}, fmt.Errorf(
			"looking for the pod of %s in %s: there are %d, want 1",
			w.w.Name,
			w.w.Namespace,
			len(alive),
		)
	}
	found := pod{name: alive[0].Name, uid: string(alive[0].UID)}
	for _, n := range w.c.Machines {
		if n.name == alive[0].Spec.NodeName {
			on := *n
			on.arm = w.w.Arm // a copy of the node, which is the arm's
			found.node = &on
		}
	}
	if found.node == nil {
		return pod{}, fmt.Errorf(
			"pod %s of %s is on node %q, which is none of the cluster's",
			found.name,
			w.w.Namespace,
			alive[0].Spec.NodeName,
		)
	}
	w.pod, w.node = &found, found.node
	return found, nil
}

// pods lists the pods of a namespace that have a label.
func (c *Cluster) pods(ctx context.Context, namespace, label string) ([]corev1.Pod, error) {
	a, err := c.get(
		ctx,
		"/api/v1/namespaces/"+namespace+"/pods?labelSelector="+url.QueryEscape(label),
	)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	var list corev1.PodList
	err = json.NewDecoder(a).Decode(&list)
	return list.Items, err
}

// forget makes find look for the pod again, after a request to it failed.
func (w *workload) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pod = nil
}

// Name returns the workload's name.
func (w *workload) Name() string { return w.w.Name }

// Node returns the node where the pod was found last, with the workload's arm.
func (w *workload) Node() cluster.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.node
}

// Abilities returns nothing beyond what all components can do.
func (*workload) Abilities() cluster.ComponentAbilities { return cluster.ComponentAbilities{} }

// Get requests a path from the container's first port, through the API server's pod proxy.
func (w *workload) Get(ctx context.Context, at string) (io.ReadCloser, error) {
	p, err := w.find(ctx)
	if err != nil {
		return nil, err
	}
	a, err := w.c.get(
		ctx,
		"/api/v1/namespaces/"+w.w.Namespace+"/pods/"+p.name+"/proxy/"+strings.TrimPrefix(at, "/"),
	)
	if err != nil {
		w.forget()
		return nil, fmt.Errorf("asking %s of %s: %w", w.w.Name, w.w.Namespace, err)
	}
	return a, nil
}

// Logs streams CRI log lines of the container, from the first line on and over its restarts.
func (w *workload) Logs(ctx context.Context) (io.ReadCloser, error) {
	p, err := w.find(ctx)
	if err != nil {
		return nil, err
	}
	return p.node.stream(
		ctx,
		"sh",
		"-c",
		`exec tail --quiet --lines=+1 --follow=name --retry "$1"/*.log`,
		"sh",
		w.logs(p),
	)
}

func (w *workload) logs(p pod) string {
	return "/var/log/pods/" + w.w.Namespace + "_" + p.name + "_" + p.uid + "/" + w.w.Name
}

// Signal sends a signal to the container's process.
func (w *workload) Signal(ctx context.Context, sig os.Signal, of cluster.Identity) error {
	p, err := w.find(ctx)
	if err != nil {
		return err
	}
	return p.node.signal(ctx, sig, of, w.pid(p))
}

// Identity returns which process runs, with PID 0 while the container is down. Restarts is the kubelet's count, read
// from the names of the log files.
func (w *workload) Identity(ctx context.Context, digest bool) (cluster.Identity, error) {
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

// pid returns commands that print the id of the pod's oldest process that runs the workload's program, or nothing if
// there is none. They know the pod's processes by their control group, whose name has the pod's UID, with underscores
// if systemd's driver made it. They run every two seconds, so they look only at processes of the program's name. If
// they can't look at a process that is there, they fail, because it may be the workload's.
func (w *workload) pid(p pod) string {
	const most = 15 // characters of a process's name that the kernel keeps
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
