package trial

import (
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// fillUnknownConstants assumes a value for each constant that could not be read from an arm's source: the value a fault
// was sized for, else the largest value of the other arms. A constant that is unknown in all arms stays unknown.
func fillUnknownConstants(
	w *bundle.World,
	constants []scenario.Constant,
	sized map[string]int64,
) {
	for i := range w.Arms {
		c := &w.Arms[i]
		for _, k := range constants {
			if _, known := c.Constants[k.Name]; known {
				continue
			}
			value, ok := sized[k.Name]
			if !ok {
				value, ok = largest(w.Arms, k.Name)
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

func largest(arms []bundle.ArmWorld, constant string) (out int64, ok bool) {
	for _, c := range arms {
		if v, known := c.Constants[constant]; known && (!ok || v > out) {
			out, ok = v, true
		}
	}
	return out, ok
}
