package kinds

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/heap"
)

func init() {
	check.Register(check.Kind{
		Name: "allocShare",
		Doc: "Which share of all that the subject has ever allocated was allocated below functions, freed again or not, by one " +
			"heap profile of the window.\n\n" +
			"A share says nothing of how fast that was. So it must also be so many bytes. This check is for evidence that has one " +
			"profile only; between two of them costPerUnit tells the cost of each unit of work.",
		Example: "name: memory-goes-into-addresses\nkind: allocShare\nphase: fault\nspec:\n  under: [net.interfaceAddrTable]\n  above: 50%\n" +
			"  atLeast: 1G\n",
		Meets:   `{"under":["pleg.(*GenericPLEG).Relist"],"above":"50%","atLeast":"1M"}`,
		Differs: `{"under":["net.interfaceAddrTable"],"above":"50%","atLeast":"1M"}`,
		New:     func() check.Check { return &AllocShare{} },
	})
}

// AllocShare asks what a process allocates most for.
type AllocShare struct {
	Under   []string `json:"under" jsonschema:"parts of function names. Memory counts if it was allocated below a function whose name has one of these parts"`
	Above   string   `json:"above" jsonschema:"the share must be larger than this: 0% or more, and less than 100%"`
	AtLeast string   `json:"atLeast" jsonschema:"how many bytes that must be at least, such as 1G"`
}

// Reads names heap profiles.
func (c *AllocShare) Reads() []bundle.Kind { return []bundle.Kind{bundle.Heap} }

// Validate refuses a share that any profile would exceed, or none could.
func (c *AllocShare) Validate() error {
	share, err := question.Percent("above", c.Above)
	_, bad := c.least()
	return errors.Join(err, bad,
		question.Refuse(len(c.Under) == 0 || slices.Contains(c.Under, ""), "under is %q (want at least one, none of them empty)", c.Under),
		question.Refuse(err == nil && (share < 0 || share >= 1), "above is %s (want 0%% or more, and less than 100%%)", c.Above))
}

// least returns how many bytes there must be.
func (c *AllocShare) least() (float64, error) {
	q, err := resource.ParseQuantity(c.AtLeast)
	if err != nil || q.Sign() <= 0 {
		return 0, fmt.Errorf("atLeast is %q (want bytes above 0, with a suffix: 200k)", c.AtLeast)
	}
	return q.AsApproximateFloat64(), nil
}

// allocated is what one profile shows, in bytes.
type allocated struct{ in, all int64 }

// Eval reads every profile of the window. The one with the largest share decides.
func (c *AllocShare) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, fmt.Sprintf("more than %s of what was ever allocated below %q, and at least %s", c.Above, c.Under, c.AtLeast))
	if !ok {
		return q.Finding
	}
	above, _ := question.Percent("above", c.Above) // Validate has read both
	least, _ := c.least()
	var all question.Captured
	var most allocated
	read, met := 0, false
	all.Each(q, bundle.Heap, "profile", func(a bundle.Artifact) error {
		if a.Missing {
			return question.CaptureError(a)
		}
		one, err := question.Remember(
			q.View,
			a,
			fmt.Sprintf("share allocated below %q", c.Under),
			c.read,
		)
		if err != nil {
			return err
		}
		if read++; one.share() > most.share() || read == 1 {
			most = one
		}
		met = met || one.share() > above && float64(one.in) >= least
		return nil
	})
	q.Evidence, q.Differs = all.Paths, question.FirstAndLast(all.Notes)
	q.Say(
		"%.3g%% of %s in one of %d profiles",
		question.N("percent", 100*most.share()),
		question.Mebibytes(most.all),
		question.N("profiles", read),
	)
	switch {
	case met:
		q.Met = check.True
	case all.Missing != nil:
		q.Doubt(all.Missing)
	case read == 0:
		q.DoubtBy(check.NotRecorded, ": there is nothing to answer by")
	default:
		q.Met = check.False
	}
	return q.Finding
}

func (a allocated) share() float64 {
	if a.all == 0 {
		return 0
	}
	return float64(a.in) / float64(a.all)
}

func (c *AllocShare) read(out allocated, r io.Reader) (allocated, error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return out, err
	}
	if out.in, _, err = heap.Allocated(bytes.NewReader(raw), c.Under); err != nil {
		return out, err
	}
	out.all, _, err = heap.Allocated(bytes.NewReader(raw), []string{""}) // which every name has
	return out, err
}
