package cli

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// A host that can't do what the first provider needs gets the next one, unless one was asked for; other errors end it.
func TestFirstProvider(t *testing.T) {
	unfit, broke := &cluster.HostError{Problems: []string{"no engine"}}, errors.New("broke")
	const chosen = "provider kind: the first of the scenario's (kind, processes); --provider asks for one\n"
	const refused = chosen + "provider kind can't be used: this host can't run it yet:\n  no engine\n" +
		"provider processes: the next of the scenario's (kind, processes); --provider asks for one\n"
	for _, c := range []struct {
		asked string
		kind  error
		next  error
		tried []string
		said  string
		want  error
	}{
		{asked: autoProvider, tried: []string{"kind"}, said: chosen},
		{asked: autoProvider, kind: unfit, tried: []string{"kind", "processes"}, said: refused},
		{asked: autoProvider, kind: unfit, next: unfit, tried: []string{"kind", "processes"}, said: refused, want: unfit},
		{asked: autoProvider, kind: broke, tried: []string{"kind"}, said: chosen, want: broke},
		{asked: "processes", kind: unfit, tried: []string{"processes"}},
		{asked: "kind", kind: unfit, tried: []string{"kind"}, want: unfit},
	} {
		s := &scenario.Scenario{Spec: scenario.Spec{Providers: []string{"kind", "processes"}}}
		var said bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetErr(&said)
		var tried []string
		err := (&planFlags{provider: c.asked}).firstProvider(cmd, s, func(name string) error {
			tried = append(tried, name)
			return map[string]error{"kind": c.kind, "processes": c.next}[name]
		})
		if !slices.Equal(tried, c.tried) || said.String() != c.said || !errors.Is(err, c.want) {
			t.Errorf("%s: tried %q, said %q, %v; want %q, %q, %v", c.asked, tried, said.String(), err, c.tried, c.said,
				c.want)
		}
	}
}
