package match

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/archive"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// object is a node, or a container of a pod, as a resource of a bundle shows it.
type object struct {
	path, component, place, version string
	nodes                           []bundle.NodeStatus
	statuses                        []bundle.ContainerStatus
}

// manifest holds the fields that are read of a resource: a node, a pod, an event or a ConfigMap.
type manifest struct {
	Kind     string `json:"kind"`
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
		ContainerStatuses []containerStatus `json:"containerStatuses"`
	} `json:"status"`

	Data       map[string]string `json:"data"` // of a ConfigMap, in which people and tools keep logs and dumps
	BinaryData map[string][]byte `json:"binaryData"`

	// Only events have these.
	Type           string `json:"type"`
	Reason         string `json:"reason"`
	Message        string `json:"message"`
	Count          int    `json:"count"`
	InvolvedObject struct{ Kind, Namespace, Name string }
	Regarding      struct{ Kind, Namespace, Name string }
}

type containerStatus struct {
	Name, ContainerID string
	RestartCount      int
	State, LastState  struct{ Terminated *terminated }
}

type terminated struct {
	Reason, ContainerID string
	ExitCode            int32
	FinishedAt          time.Time
	Message             string // the last lines of its log, where a pod asks for them
}

// document reads resources. It uses nodes, pods and events, and ignores all others. Logs of containers between them are
// read as logs.
func (e *evidence) document(
	f archive.Entry,
	in *bufio.Reader,
	as func(form, lacks string),
) error {
	n, above, logs := 0, 0, 0
	var bad error
	for {
		rest, lines, err := documents(in, func(m manifest) {
			if m.Kind == "ConfigMap" {
				read, err := e.configMap(f, m)
				logs, bad = logs+read, errors.Join(bad, err)
				return
			}
			n += e.resource(f, m)
		})
		bad = errors.Join(bad, err)
		if rest == nil {
			break
		}
		above += lines
		lines, err = e.containerLogs(f, rest, above)
		bad, logs = errors.Join(bad, err), logs+1
		if lines == 0 {
			break
		}
		in, above = rest, above+lines
	}
	if n > 0 || logs == 0 {
		as(fmt.Sprintf("resources, %d of them nodes, pods and warnings", n), lacksMoment)
	}
	return bad
}

// image matches the last name and the tag of an image's reference.
var image = regexp.MustCompile(`([a-z0-9.-]+):(v[0-9]+\.[0-9]+\.[0-9]+[-+.\w]*)(@|$)`)

// resource takes versions, states and warnings from a resource. It returns 1 if the resource is of a kind that is used.
func (e *evidence) resource(f archive.Entry, m manifest) (n int) {
	switch {
	case m.Kind == "Node" || m.Kind == "" && m.Status.NodeInfo.KubeletVersion != "":
		e.node(f, m)
	case m.Kind == "Pod" || m.Kind == "" && len(m.Status.ContainerStatuses) > 0:
		e.pod(f, m)
	case m.Type == "Warning" && m.Reason != "":
		about := m.InvolvedObject
		if about.Kind == "" {
			about = m.Regarding
		}
		e.addWarning(Warning{Reason: m.Reason, About: strings.ToLower(about.Kind) + " " + path.Join(about.Namespace, about.Name),
			Count: max(1, m.Count), Message: m.Message, Path: f.Path})
	default:
		return 0
	}
	return 1
}

func (e *evidence) node(f archive.Entry, m manifest) {
	o := object{path: f.Path, component: "kubelet", place: "node " + m.Metadata.Name,
		version: m.Status.NodeInfo.KubeletVersion}
	for _, c := range m.Status.Conditions {
		if c.Type == "Ready" {
			o.nodes = []bundle.NodeStatus{{Time: c.LastHeartbeatTime, Node: m.Metadata.Name, Status: c.Status, Reason: c.Reason,
				Message: c.Message, Beat: c.LastHeartbeatTime, Changed: c.LastTransitionTime}}
		}
	}
	e.objects = append(e.objects, o)
}

func (e *evidence) pod(f archive.Entry, m manifest) {
	place := "pod " + path.Join(m.Metadata.Namespace, m.Metadata.Name)
	from := len(e.objects)
	for _, c := range m.Spec.Containers {
		o := object{path: f.Path, component: c.Name, place: place}
		if i := image.FindStringSubmatch(c.Image); i != nil && i[1] == c.Name {
			o.version = i[2]
		}
		e.objects = append(e.objects, o)
	}
	for _, c := range m.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil { // it has not been started again yet
			e.lastLines(f, place, c.Name, t.Message)
		}
		if c.RestartCount == 0 {
			continue
		}
		r := Restart{Container: c.Name, Place: place, Restarts: c.RestartCount, Path: f.Path}
		if t := c.LastState.Terminated; t != nil {
			e.lastLines(f, place, c.Name, t.Message)
			r.Reason, r.ExitCode, r.At = t.Reason, t.ExitCode, t.FinishedAt
			at := slices.IndexFunc(
				e.objects[from:],
				func(o object) bool { return o.component == c.Name },
			)
			if at >= 0 && !t.FinishedAt.IsZero() {
				o := &e.objects[from+at]
				o.statuses = append(
					o.statuses,
					bundle.ContainerStatus{
						Time:         t.FinishedAt,
						Pod:          m.Metadata.Name,
						Container:    c.Name,
						ID:           c.ContainerID,
						RestartCount: int32(c.RestartCount),
						LastID:       cmp.Or(t.ContainerID, "the one before"),
						LastReason:   t.Reason,
						LastExitCode: t.ExitCode,
						LastFinished: t.FinishedAt,
					},
				)
			}
		}
		e.restarts = append(e.restarts, r)
	}
}

// lastLines reads the last lines of a container's log that its status has.
func (e *evidence) lastLines(f archive.Entry, place, container, text string) {
	if text == "" {
		return
	}
	s := newSource(f)
	s.named, s.segments, s.folder, s.took = []string{container}, nil, f.Path+", "+place, time.Time{}
	if err := e.text(s, bufio.NewReader(strings.NewReader(text))); err != nil {
		e.problems = append(e.problems, archive.Problem{Path: f.Path, Message: err.Error()})
	}
	e.sources = append(e.sources, s)
	what, lacks := s.form()
	e.inputs = append(
		e.inputs,
		Input{
			f.Path,
			fmt.Sprintf("the last lines of container %s of %s: %s", container, place, what),
			lacks,
		},
	)
}

// addWarning adds a warning, or its count if there is one with the same reason about the same object.
func (e *evidence) addWarning(w Warning) {
	same := func(o Warning) bool { return o.Reason == w.Reason && o.About == w.About }
	switch at := slices.IndexFunc(e.warnings, same); {
	case at >= 0:
		e.warnings[at].Count += w.Count
	case len(e.warnings) < maxWarned:
		e.warnings = append(e.warnings, w)
	}
}

// maxWarned bounds how many different warnings are counted.
const maxWarned = 2000
