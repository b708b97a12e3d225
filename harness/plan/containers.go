package plan

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// podded is an object that has a pod template, or is a pod.
type podded struct {
	Spec struct {
		corev1.PodSpec
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}

// containers returns the names of the containers that the manifests of arms have, each once.
func (t *Trial) containers() []string {
	var out []string
	for _, m := range t.Manifests {
		if m.Arm == "" {
			continue
		}
		d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(m.Content), 4096)
		for {
			var o podded
			// An object of another shape has no containers that relapse knows of.
			if err := d.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				continue
			}
			for _, c := range slices.Concat(o.Spec.Containers, o.Spec.Template.Spec.Containers) {
				if !slices.Contains(out, c.Name) {
					out = append(out, c.Name)
				}
			}
		}
	}
	return out
}

// validateSubject refuses a subject that is no container of the arms' manifests, where arms are workloads.
func (t *Trial) validateSubject() error {
	if !t.Place().SharedNodes() {
		return nil
	}
	if have := t.containers(); len(have) > 0 && !slices.Contains(have, t.Subject) {
		return scenario.InField(
			fmt.Errorf("%q is no container of the manifests with each: arm %s", t.Subject,
				scenario.OneOf(t.Subject, have)),
			"subject",
		)
	}
	return nil
}
