package harness

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/fault"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// assume has each constant that is not known of a cell stand for something: what a fault was sized for, or else the largest value that another
// cell has. One that is known of no cell stays unknown.
func assume(w *bundle.World, constants []scenario.Constant, sized map[string]int64) {
	for i := range w.Cells {
		c := &w.Cells[i]
		for _, k := range constants {
			if _, known := c.Constants[k.Name]; known {
				continue
			}
			value, ok := sized[k.Name]
			if !ok {
				value, ok = largest(w.Cells, k.Name)
			}
			if !ok {
				continue
			}
			if c.Assumed == nil {
				c.Assumed = map[string]int64{}
			}
			c.Assumed[k.Name] = value
		}
	}
}

func largest(cells []bundle.CellWorld, constant string) (out int64, ok bool) {
	for _, c := range cells {
		if v, known := c.Constants[constant]; known && (!ok || v > out) {
			out, ok = v, true
		}
	}
	return out, ok
}

// refuseFaults computes every trial's faults from its arms' constants, before a cluster exists for one that can't be.
func (l *Lab) refuseFaults(p *plan.Plan) error {
	for _, t := range p.Trials {
		var given *scenario.Arm
		var all, controls []map[string]int64
		for _, c := range t.Cells {
			constants := l.arms[armKey(c.Arm)].constants
			all = append(all, constants)
			if c.Arm.Role == scenario.Candidate {
				given = &c.Arm
			} else {
				controls = append(controls, constants)
			}
		}
		err := computable(t, all)
		var tooLarge *fault.TooLargeError
		if errors.As(err, &tooLarge) && given != nil && (len(controls) == 0 || computable(t, controls) == nil) {
			return &CandidateError{Given: describe(given.Source), Err: err,
				Hint: "set its constants back to those of the other arms and run it again: a larger number only needs a larger fault, and what is judged is how it goes on from there"}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// computable is an error where the faults of a trial can't be computed from constants. The faults are made anew when it runs.
func computable(t plan.Trial, constants []map[string]int64) error {
	var all []fault.Fault
	for _, item := range t.Faults {
		f, err := fault.New(item.Kind, item.Spec)
		if err != nil {
			return fmt.Errorf("fault %s: %w", item.Name, err)
		}
		all = append(all, f)
	}
	for i, f := range all {
		if c, ok := f.(fault.Computer); ok {
			if _, err := c.Compute(constants, all); err != nil {
				return fmt.Errorf("computing fault %s: %w", t.Faults[i].Name, err)
			}
		}
	}
	return nil
}

// diffs keeps how source trees differ from their commits.
func (r *trial) diffs() error {
	for _, c := range r.plan.Cells {
		diff := r.world.cells[c.Name].diff
		if len(diff) == 0 {
			continue
		}
		if _, err := r.writer.Write(bundle.Meta{Kind: bundle.SourceDiff, Cell: c.Name}, "diff", bytes.NewReader(diff)); err != nil {
			return err
		}
	}
	return nil
}
