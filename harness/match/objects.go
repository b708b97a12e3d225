package match

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/kube-relapse/relapse/harness/evidence/archive"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// object is a node, or a container of a pod, as a resource of a bundle shows it.
type object struct {
	path, component, place, version string
	nodes                           []bundle.NodeStatus
}

// manifest is what is read of a resource, or of a list of them.
type manifest struct {
	Kind     string     `json:"kind"`
	Items    []manifest `json:"items"`
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		Containers []struct{ Name, Image string } `json:"containers"`
	} `json:"spec"`
	Status struct {
		NodeInfo struct {
			KubeletVersion string `json:"kubeletVersion"`
		} `json:"nodeInfo"`
		Conditions []struct {
			Type, Status, Reason, Message string
			LastHeartbeatTime             time.Time
			LastTransitionTime            time.Time
		} `json:"conditions"`
		ContainerStatuses []struct {
			Name         string
			RestartCount int
			LastState    struct {
				Terminated *struct {
					Reason     string
					ExitCode   int32
					FinishedAt time.Time
				}
			}
		} `json:"containerStatuses"`
	} `json:"status"`
}

var resource = regexp.MustCompile(`^(---\s*\n)?(#[^\n]*\n)*(apiVersion|kind|items|metadata):|` +
	`^\{\s*"(apiVersion|kind|items|metadata)":`)

// document reports whether a file begins like resources.
func document(begin []byte) bool { return resource.Match(begin) }

// document reads resources: nodes and pods count, anything else is passed over.
func (e *evidence) document(f archive.Entry, in io.Reader, as func(form, lacks string)) error {
	all, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	if err == nil && len(all) > maxDocument {
		err = fmt.Errorf("it is over %d bytes long: not read", maxDocument)
	}
	if err != nil {
		return err
	}
	n := 0
	var bad error
	for _, one := range documents(all) {
		var m manifest
		if err := one(&m); err != nil {
			bad = errors.Join(bad, err)
			continue
		}
		n += e.resource(f, m)
	}
	as(fmt.Sprintf("resources, %d of them nodes and pods", n), lacksMoment)
	return bad
}

// documents are the decoders of a file's documents.
func documents(all []byte) (out []func(*manifest) error) {
	if bytes.HasPrefix(bytes.TrimSpace(all), []byte("{")) {
		for d := json.NewDecoder(bytes.NewReader(all)); d.More(); {
			var raw json.RawMessage
			if err := d.Decode(&raw); err != nil {
				return append(out, func(*manifest) error { return err })
			}
			out = append(out, func(m *manifest) error { return json.Unmarshal(raw, m) })
		}
		return out
	}
	for _, one := range strings.Split("\n"+string(all), "\n---") {
		if strings.TrimSpace(one) != "" {
			out = append(out, func(m *manifest) error { return yaml.Unmarshal([]byte(one), m) })
		}
	}
	return out
}

// image is a reference's last name and its tag.
var image = regexp.MustCompile(`([a-z0-9.-]+):(v[0-9]+\.[0-9]+\.[0-9]+[-+.\w]*)(@|$)`)

// resource takes a node's or a pod's versions and states, and says how many of those there were.
func (e *evidence) resource(f archive.Entry, m manifest) (n int) {
	for _, i := range m.Items {
		if i.Kind == "" {
			i.Kind = strings.TrimSuffix(m.Kind, "List")
		}
		n += e.resource(f, i)
	}
	switch m.Kind {
	case "Node":
		o := object{path: f.Path, component: "kubelet", place: "node " + m.Metadata.Name,
			version: m.Status.NodeInfo.KubeletVersion}
		for _, c := range m.Status.Conditions {
			if c.Type == "Ready" {
				o.nodes = []bundle.NodeStatus{{Time: c.LastHeartbeatTime, Node: m.Metadata.Name, Status: c.Status, Reason: c.Reason,
					Message: c.Message, Beat: c.LastHeartbeatTime, Changed: c.LastTransitionTime}}
			}
		}
		e.objects = append(e.objects, o)
		return n + 1
	case "Pod":
		place := "pod " + path.Join(m.Metadata.Namespace, m.Metadata.Name)
		for _, c := range m.Spec.Containers {
			o := object{path: f.Path, component: c.Name, place: place}
			if i := image.FindStringSubmatch(c.Image); i != nil && i[1] == c.Name {
				o.version = i[2]
			}
			e.objects = append(e.objects, o)
		}
		for _, c := range m.Status.ContainerStatuses {
			if c.RestartCount == 0 {
				continue
			}
			r := Restart{Container: c.Name, Place: place, Restarts: c.RestartCount, Path: f.Path}
			if t := c.LastState.Terminated; t != nil {
				r.Reason, r.ExitCode, r.At = t.Reason, t.ExitCode, t.FinishedAt
			}
			e.restarts = append(e.restarts, r)
		}
		return n + 1
	}
	return n
}
