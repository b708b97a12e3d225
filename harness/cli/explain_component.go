package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/printing"
)

// explainSubject explains a component, or a workload that is the subject of a scenario here. It returns false if name
// is neither.
func explainSubject(cmd *cobra.Command, name string) (bool, error) {
	about := subjectOf(cmd, name)
	row, known := component.Of(name)
	if !known && len(about) == 0 {
		return false, nil
	}
	var b strings.Builder
	if known {
		fmt.Fprintf(&b, "component %s\n\n", name)
		t := printing.Table{Indent: "  "}
		for _, f := range facts(row) {
			t.Add(f[0], f[1])
		}
		b.WriteString(t.Fit(width(cmd.OutOrStdout())))
	} else {
		fmt.Fprintf(
			&b,
			"subject %s\n\nA workload: a Deployment of the scenario's manifests, which runs each arm's build.\n",
			name,
		)
	}
	if len(about) > 0 {
		fmt.Fprintf(&b, "\nIt is the subject of: %s\n", strings.Join(about, ", "))
	}
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return true, err
}

// subjectOf returns the names of the scenarios here whose subject has a name.
func subjectOf(cmd *cobra.Command, name string) []string {
	return scenariosWith(cmd, func(s *scenario.Scenario) bool { return s.Spec.Subject == name })
}

// facts returns what the table of components has about one, as pairs of a word and a sentence.
func facts(c component.Component) [][2]string {
	runs := map[component.Runs]string{
		component.AsService:   "as a service of each node, which restarts it",
		component.AsStaticPod: "as a static pod of each control plane, whose kubelet restarts it",
		component.AsDaemonSet: "as a pod of a DaemonSet on each node, whose kubelet restarts it",
		component.AsAddedPod:  "as a static pod of each control plane that a scenario gives a program for it",
		component.AsSeam:      "as a service of each control plane, with its seam only; it is no component of Kubernetes",
	}
	out := [][2]string{
		{"runs", runs[c.Runs]},
		{"program", c.Executable},
		{"ready", "once " + c.Ready + " answers 200"},
	}
	switch {
	case c.Endpoint.Proxied:
		out = append(out, [2]string{"endpoint", "through the API server's proxy to the node"})
	case c.Endpoint.URL != "":
		out = append(out, [2]string{"endpoint", c.Endpoint.URL + " on its node"})
	}
	switch {
	case c.Kubernetes && c.Older == 0:
		out = append(out, [2]string{"version", "that of its cluster"})
	case c.Older > 0 && c.OlderUntil != nil:
		out = append(out, [2]string{
			"version",
			fmt.Sprintf(
				"up to %d minor versions older than its API server, %d in clusters below v1.%d",
				c.Older,
				c.OlderUntil.Older,
				c.OlderUntil.Minor,
			),
		})
	case c.Older > 0:
		out = append(
			out,
			[2]string{
				"version",
				fmt.Sprintf("up to %d minor version older than its API server", c.Older),
			},
		)
	}
	switch {
	case c.Kubeadm.Config != "":
		out = append(
			out,
			[2]string{
				"args",
				"spec.args." + c.Name + " sets fields of its configuration, by dotted names",
			},
		)
	case component.Flagged(c):
		out = append(out, [2]string{"args", "spec.args." + c.Name + " sets its flags"})
	}
	if c.Limited {
		out = append(out, [2]string{"memory", "spec.memory." + c.Name + " limits it"},
			[2]string{"files", "spec.files." + c.Name + " are files of its own"})
	}
	if c.Elects {
		out = append(
			out,
			[2]string{
				"leader",
				"one of its instances, by the Lease " + c.Name + " in kube-system",
			},
		)
	}
	if component.Replaceable(c) {
		return append(
			out,
			[2]string{"subject", "yes: an arm can run a build of its own in place of it"},
		)
	}
	return append(out, [2]string{"subject", "no: its program can't be replaced"})
}
