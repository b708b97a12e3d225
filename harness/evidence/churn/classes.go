package churn

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// Class is a group of writes that changed the same paths of objects of one resource, by one manager.
type Class struct {
	Resource             string
	Paths                []string // sorted; see Update
	Type                 string
	Manager, Subresource string
	Count                int
	First, Last          time.Time
}

// Classes groups the writes among updates, the largest group first. It stops at the first error.
func Classes(updates iter.Seq2[Update, error]) ([]Class, error) {
	type key struct{ resource, typ, class, manager, subresource string }
	at := map[key]int{}
	var out []Class
	for u, err := range updates {
		if err != nil {
			return nil, err
		}
		if !u.Effective() {
			continue
		}
		k := key{u.Resource, u.Type, u.Class, u.Manager, u.Subresource}
		i, ok := at[k]
		if !ok {
			i, at[k] = len(out), len(out)
			out = append(out, Class{Resource: u.Resource, Paths: u.Paths, Type: u.Type, Manager: u.Manager,
				Subresource: u.Subresource, First: u.Time})
		}
		out[i].Count++
		out[i].Last = u.Time
	}
	slices.SortStableFunc(out, func(a, b Class) int { return cmp.Compare(b.Count, a.Count) })
	return out, nil
}

// Series counts times by steps from a start to an end, which is not included: element i counts those in [from +
// i*step, from + (i+1)*step).
func Series(times []time.Time, from, to time.Time, step time.Duration) []int {
	if step <= 0 || !to.After(from) {
		return nil
	}
	out := make([]int, (to.Sub(from)+step-1)/step)
	for _, t := range times {
		if !t.Before(from) && t.Before(to) {
			out[t.Sub(from)/step]++
		}
	}
	return out
}

// LongestGap is the longest time between two writes, and where it begins; from and to count as if they were writes.
// times are in order.
func LongestGap(times []time.Time, from, to time.Time) (longest time.Duration, at time.Time) {
	last, at := from, from
	for _, t := range append(slices.Clone(times), to) {
		if t.Before(from) || t.After(to) {
			continue
		}
		if gap := t.Sub(last); gap > longest {
			longest, at = gap, last
		}
		last = t
	}
	return longest, at
}
