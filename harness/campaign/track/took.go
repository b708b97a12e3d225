package track

import (
	"slices"
	"time"
)

// Took is how long the trials of a pair took on a provider, as far as the record has it.
type Took struct {
	Provider          string
	Trials            int
	Shortest, Longest time.Duration
}

// Took returns how long the trials of a pair took, for each of the providers on which any was measured, in the order of
// providers. Trials with settings of their own are others, and don't count.
func (r Record) Took(pair string, providers []string) (out []Took) {
	for _, provider := range providers {
		var all []float64
		for _, run := range r.Runs {
			if run.Pair == pair && run.Provider == provider && len(run.Set) == 0 {
				all = append(all, run.Seconds...)
			}
		}
		if len(all) == 0 {
			continue
		}
		long := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
		out = append(out, Took{provider, len(all), long(slices.Min(all)), long(slices.Max(all))})
	}
	return out
}
