package check

import (
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	register(kind{
		Name: "processCPU",
		Doc: "How many CPUs the subject's process used, against a number or against the baseline.\n\n" +
			"It is metricRate of what the kernel of its node counts, which a subject with other metrics, or none, can't keep to itself. Every trial " +
			"records it beside the process's identity. Another process, or none for longer than 20s, is unknown.",
		Example: "name: agent-busy\nkind: processCPU\nphase: fault\nspec:\n  timesBaseline: 5\n  floor: 0.01\n  window:\n    terminating: 1\n",
		New:     func() Check { return &ProcessCPU{} },
	})
}

// ProcessCPU asks how busy the subject's process is.
type ProcessCPU struct {
	Above               *float64 `json:"above,omitempty" jsonschema:"how many CPUs it must use more than"`
	AtMost              *float64 `json:"atMost,omitempty" jsonschema:"how many it must not use more than, instead"`
	TimesBaseline       float64  `json:"timesBaseline,omitzero" jsonschema:"it must use at least so many times the baseline's, instead"`
	AtMostTimesBaseline float64  `json:"atMostTimesBaseline,omitzero" jsonschema:"or at most so many times"`
	Floor               float64  `json:"floor,omitzero" jsonschema:"what the baseline's use counts as at least"`
	Window              *Quiet   `json:"window,omitempty" jsonschema:"only while what stands still; see quietWorld"`
}

// rate is the question as one about a counter of seconds.
func (c *ProcessCPU) rate() *MetricRate {
	return &MetricRate{Metric: processCPUTime, Above: c.Above, AtMost: c.AtMost, TimesBaseline: c.TimesBaseline,
		AtMostTimesBaseline: c.AtMostTimesBaseline, Floor: c.Floor, Window: c.Window, ofProcess: true}
}

// Reads names identities, and recorded objects where there is a window.
func (c *ProcessCPU) Reads() []bundle.Kind {
	return append([]bundle.Kind{bundle.Identity}, c.Window.reads()...)
}

// Validate refuses what metricRate does.
func (c *ProcessCPU) Validate() error { return c.rate().Validate() }

// Eval compares the use between the first and the last look with the limit.
func (c *ProcessCPU) Eval(v bundle.View, s Scope) Finding { return c.rate().Eval(v, s) }
