package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/kube-relapse/relapse/harness/match/resource"
)

// Plan lists the requests for components before anything is known of the cluster. NODE, NAMESPACE and POD stand for
// names that the first answers give.
func Plan(components []string, b Budget) (out []Request) {
	b = b.orDefault()
	out = []Request{version, nodes, pods, warnings}
	if slices.Contains(components, kubelet) {
		few := fmt.Sprintf(" (of at most %d nodes)", b.Nodes)
		for _, r := range ofKubelet("NODE") {
			r.Why += few
			out = append(out, r)
		}
	}
	if slices.Contains(components, apiserver) {
		out = append(out, ofAPIServer()...)
	}
	for _, c := range components {
		if c != kubelet {
			for _, r := range ofPod(pod{"NAMESPACE", "POD", c}) {
				r.Why += " (of each pod that has the container)"
				out = append(out, r)
			}
		}
	}
	for i, r := range out {
		if path.Base(r.File) == eachFile {
			out[i].Why += fmt.Sprintf(
				" (only of processes with at most %d goroutines)",
				b.Goroutines,
			)
		}
	}
	return out
}

const (
	kubelet   = "kubelet"
	apiserver = "kube-apiserver"

	goroutines = "/debug/pprof/goroutine"
	logLimit   = 16 << 20
	eachFile   = "goroutines-debug2.txt"
)

var (
	version = Request{Path: "/version", File: "version.json", Why: "the API server's version"}
	nodes   = Request{
		Path: "/api/v1/nodes?limit=500",
		File: "nodes.json",
		Why:  "versions and conditions of the nodes",
	}
	pods = Request{Path: "/api/v1/pods?limit=5000", File: "pods.json",
		Why: "images, restarts and how containers ended"}
	warnings = Request{
		Path: "/api/v1/events?limit=2000&fieldSelector=type%3DWarning",
		File: "events.json",
		Why:  "warnings",
	}
)

func ofKubelet(node string) []Request {
	return ofProcess("/api/v1/nodes/"+node+"/proxy", "nodes/"+node+"/"+kubelet, "the kubelet's")
}

func ofAPIServer() []Request { return ofProcess("", apiserver, "the API server's") }

// ofProcess returns the requests to one process: for its goroutines counted, for each goroutine, and for its metrics.
func ofProcess(at, folder, whose string) []Request {
	return []Request{
		{Path: at + goroutines + "?debug=1", File: folder + "/goroutines-debug1.txt",
			Why: whose + " goroutines, counted: a short pause of the process"},
		{Path: at + goroutines + "?debug=2", File: folder + "/" + eachFile, Why: whose + " goroutines, each with its state"},
		{Path: at + "/metrics", File: folder + "/metrics.txt", Why: whose + " metrics"},
	}
}

// process makes the requests that ofProcess returns.
func (c *collector) process(ctx context.Context, of []Request) error {
	if err := c.stacks(ctx, of[0], of[1]); err != nil {
		return err
	}
	_, err := c.get(ctx, of[2])
	return err
}

// pod is a pod, and the container in it whose logs are read.
type pod struct{ namespace, name, container string }

func ofPod(p pod) (out []Request) {
	at := fmt.Sprintf(
		"/api/v1/namespaces/%s/pods/%s/log?container=%s&timestamps=true&limitBytes=%d",
		p.namespace,
		p.name,
		p.container,
		logLimit,
	)
	folder := path.Join("pods", p.namespace, p.name, p.container)
	return []Request{
		{Path: at + "&previous=true", File: folder + "/previous.log",
			Why: "what " + p.container + " said before it was restarted"},
		{Path: at, File: folder + "/current.log", Why: "what " + p.container + " says"},
	}
}

// all makes the requests in the order of Plan.
func (c *collector) all(ctx context.Context) error {
	if answer, err := c.get(ctx, version); err != nil || answer == nil {
		return errors.Join(
			err,
			errors.New("the API server doesn't tell its version; "+requestsFile+" says why"),
		)
	}
	listed, err := c.get(ctx, nodes)
	if err != nil {
		return err
	}
	running, err := c.get(ctx, pods)
	if err != nil {
		return err
	}
	if _, err := c.get(ctx, warnings); err != nil {
		return err
	}
	if slices.Contains(c.Components, kubelet) {
		for i, name := range nodesIn(listed) {
			of := ofKubelet(name)
			if i >= c.Budget.Nodes {
				of[0].Error = fmt.Sprintf("not made: %d nodes were asked", c.Budget.Nodes)
				if err := c.note(of[0]); err != nil {
					return err
				}
				continue
			}
			if err := c.process(ctx, of); err != nil {
				return err
			}
		}
	}
	if slices.Contains(c.Components, apiserver) {
		if err := c.process(ctx, ofAPIServer()); err != nil {
			return err
		}
	}
	for _, p := range podsIn(running, c.Components) {
		requests := ofPod(p.pod)
		if p.restarts == 0 { // there is no log from before
			requests = requests[1:]
		}
		for _, r := range requests {
			if _, err := c.get(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

type listed struct {
	Metadata struct{ Name, Namespace string }
	Spec     struct{ Containers []struct{ Name string } }
	Status   struct {
		ContainerStatuses []struct {
			Name         string
			RestartCount int
		}
	}
}

// itemsOf returns the items of a list. An answer that was cut off has those before the cut, and one that is missing has
// none. Its request says so.
func itemsOf(answer []byte) (out []listed) {
	_, _ = resource.Document(
		json.NewDecoder(bytes.NewReader(answer)),
		func(one listed) { out = append(out, one) },
	)
	return out
}

func nodesIn(answer []byte) (out []string) {
	for _, i := range itemsOf(answer) {
		out = append(out, i.Metadata.Name)
	}
	return out
}

type restarted struct {
	pod
	restarts int
}

func podsIn(answer []byte, components []string) (out []restarted) {
	for _, i := range itemsOf(answer) {
		for _, c := range i.Spec.Containers {
			if !slices.Contains(components, c.Name) {
				continue
			}
			one := restarted{pod: pod{i.Metadata.Namespace, i.Metadata.Name, c.Name}}
			for _, s := range i.Status.ContainerStatuses {
				if s.Name == c.Name {
					one.restarts = s.RestartCount
				}
			}
			out = append(out, one)
		}
	}
	return out
}
