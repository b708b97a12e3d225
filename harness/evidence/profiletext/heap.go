package profiletext

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/google/pprof/profile"
)

var (
	heapBegin  = regexp.MustCompile(`^heap profile: ([0-9]+): ([0-9]+) \[([0-9]+): ([0-9]+)\] @`)
	heapRate   = regexp.MustCompile(` @ heap/([0-9]+)$`)
	heapRecord = regexp.MustCompile(`^([0-9]+): ([0-9]+) \[([0-9]+): ([0-9]+)\] @`)
	heapFrame  = regexp.MustCompile(`^#\s+0x[0-9a-f]+\s+(\S+?)(?:\+0x[0-9a-f]+)?\s`)
)

// readHeap reads a heap profile at debug=1. Its numbers are as they were sampled, and get scaled up as those of a profile
// in protocol buffers are. Its header counts what all of its records have.
func readHeap(lines []string) (Profile, error) {
	rate := heapRate.FindStringSubmatch(lines[0])
	if rate == nil {
		return Profile{}, errors.New("it is a heap profile that doesn't say how often it sampled, so that its numbers can't be scaled up")
	}
	twice, _ := strconv.ParseInt(rate[1], 10, 64) // out of range: the largest number
	b := newBuilder(
		&profile.ValueType{Type: "alloc_objects", Unit: "count"},
		&profile.ValueType{Type: "alloc_space", Unit: "bytes"},
		&profile.ValueType{
			Type: "inuse_objects",
			Unit: "count",
		},
		&profile.ValueType{Type: "inuse_space", Unit: "bytes"},
	)
	b.p.Period = max(twice/2, 1)
	var values []int64
	var stack []string
	lacks := numbers(heapBegin.FindStringSubmatch(lines[0]))
	end := func() {
		if values != nil {
			b.add(stack, values...)
		}
		values, stack = nil, nil
	}
	for _, l := range lines[1:] {
		if m := heapRecord.FindStringSubmatch(l); m != nil {
			end()
			n := numbers(m)
			for i := range lacks {
				lacks[i] -= min(n[i], lacks[i])
			}
			allocated, inUse := scaled(n[2], n[3], b.p.Period), scaled(n[0], n[1], b.p.Period)
			values = []int64{allocated[0], allocated[1], inUse[0], inUse[1]}
		} else if m := heapFrame.FindStringSubmatch(l + " "); m != nil {
			stack = append(stack, m[1])
		}
	}
	end()
	out := Profile{Profile: b.p, Form: Heap}
	if lacks[1] > 0 || lacks[3] > 0 {
		out.Part = fmt.Sprintf(
			"its header counts %d bytes more than its records have",
			max(lacks[1], lacks[3]),
		)
	}
	return out, nil
}

// numbers returns the four numbers of a header or of a record: objects and bytes that are in use, and that were ever
// allocated.
func numbers(m []string) (out [4]int64) {
	for i := range out {
		out[i], _ = strconv.ParseInt(m[i+1], 10, 64) // out of range: the largest number
	}
	return out
}

// scaled returns how many objects and bytes there really were, where the allocations of so many were sampled at this
// rate in bytes, as scaleHeapSample of runtime/pprof does.
func scaled(objects, bytes, rate int64) [2]int64 {
	if objects <= 0 || bytes <= 0 || rate <= 1 {
		return [2]int64{objects, bytes}
	}
	scale := 1 / (1 - math.Exp(-float64(bytes)/float64(objects)/float64(rate)))
	bounded := func(n int64) int64 { return int64(min(float64(n)*scale, 1<<62)) }
	return [2]int64{bounded(objects), bounded(bytes)}
}
