package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// addressField is the field of a pod that holds its address.
const addressField = "status.podIP"

// Process says how to run an arm as a plain process where there is no kubelet. It is the only container of the
// Deployment that the arm's manifests consist of; the program is not filled in. A Deployment that asks for something
// that a plain process can't have is an error.
func (t *Trial) Process(arm string) (out cluster.Process, err error) {
	own := slices.DeleteFunc(slices.Clone(t.Manifests), func(m Manifest) bool { return m.Arm != arm })
	if len(own) != 1 {
		return out, fmt.Errorf("arm %s has %d manifests: want one, with its Deployment, where it is a plain process", arm,
			len(own))
	}
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(own[0].Content), &d); err != nil {
		return out, fmt.Errorf("%s: %w", own[0].File, err)
	}
	if out, err = processOf(d, t.Subject); err != nil {
		return out, fmt.Errorf("%s can't be a plain process: %w", own[0].File, err)
	}
	return out, nil
}

func processOf(d appsv1.Deployment, subject string) (out cluster.Process, err error) {
	pod := d.Spec.Template.Spec
	if d.Kind != "Deployment" || d.Spec.Replicas == nil || *d.Spec.Replicas != 1 || len(pod.Containers) != 1 ||
		pod.Containers[0].Name != subject || pod.Containers[0].Image != ImageReference {
		return out, fmt.Errorf("want a Deployment of one replica, whose only container %s has the image %s", subject,
			ImageReference)
	}
	c := pod.Containers[0]
	var lacks []string
	for what, asked := range map[string]bool{
		"init containers": len(pod.InitContainers) > 0, "volumes": len(pod.Volumes)+len(c.VolumeMounts) > 0,
		"a command": len(c.Command) > 0, "envFrom": len(c.EnvFrom) > 0, "lifecycle hooks": c.Lifecycle != nil,
		"a service account's token": pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken,
	} {
		if asked {
			lacks = append(lacks, what)
		}
	}
	if len(lacks) > 0 {
		slices.Sort(lacks)
		return out, fmt.Errorf("it asks for %s", strings.Join(lacks, ", "))
	}
	out.Args, out.Env = c.Args, map[string]string{}
	for _, v := range c.Env {
		switch from := v.ValueFrom; {
		case from == nil && !strings.Contains(v.Value, "$("):
			out.Env[v.Name] = v.Value
		case from != nil && from.FieldRef != nil && from.FieldRef.FieldPath == addressField:
			out.Address = append(out.Address, v.Name)
		default:
			return out, fmt.Errorf("the variable %s: want a value that names no other variable, or a reference to the field %s", v.Name, addressField)
		}
	}
	return out, serves(c, &out)
}

// serves fills in the port where the container serves HTTP, and the path of its readiness probe.
func serves(c corev1.Container, p *cluster.Process) error {
	for _, port := range c.Ports {
		if port.Name == "http" {
			p.Port = int(port.ContainerPort)
		}
	}
	if r := c.ReadinessProbe; p.Port != 0 && r != nil && r.HTTPGet != nil && r.HTTPGet.Port.StrVal == "http" {
		p.Ready = r.HTTPGet.Path
		return nil
	}
	return errors.New("want a port named http, and a readiness probe that asks there")
}
