package goroutine

import (
	"fmt"
	"regexp"
	"strings"
)

// sameHeap is how far apart the heap addresses of one process may lie, in units of 4 GiB. Two processes with heaps at
// random places differ by far more.
const sameHeap = 256

// InCommon returns how many goroutine ids two dumps have in common, and what shows that the dumps are of different
// processes, "" if nothing does. A process has its heap in one place and gives no id again, so the same id has the same
// creator and the same first function.
//
// Missing information shows nothing: a Profile, a stack that is cut short, or a heap without addresses.
func (d *Dump) InCommon(o *Dump) (n int, differs string) {
	if d.heapElsewhere(o) {
		differs = fmt.Sprintf(
			"the heap lies at %#x00000000, and in the other at %#x00000000",
			d.Arena,
			o.Arena,
		)
	}
	of := d.origins()
	for i := range o.Groups {
		is := o.Groups[i].begin()
		for _, id := range o.Groups[i].IDs {
			was, ok := of[id]
			if !ok {
				continue
			}
			n++
			if differs == "" && !was.may(is) {
				differs = fmt.Sprintf("goroutine %d was %s, and is %s in the other", id, was, is)
			}
		}
	}
	return n, differs
}

// heapElsewhere reports whether the heaps of two dumps lie in different places.
func (d *Dump) heapElsewhere(o *Dump) bool {
	return d.Arena != 0 && o.Arena != 0 && max(d.Arena, o.Arena)-min(d.Arena, o.Arena) >= sameHeap
}

func (d *Dump) origins() map[uint64]Origin {
	out := make(map[uint64]Origin, d.Total)
	for i := range d.Groups {
		is := d.Groups[i].begin()
		for _, id := range d.Groups[i].IDs {
			out[id] = is
		}
	}
	return out
}

// String returns both functions, as in `a.run, created by a.New`.
func (o Origin) String() string {
	name := func(s string) string {
		if s == "" {
			return "a function that isn't known"
		}
		return s
	}
	return name(o.Entry) + ", created by " + name(o.CreatedBy)
}

// may reports whether two origins may be of one goroutine. A function that isn't known may be any.
func (o Origin) may(other Origin) bool {
	alike := func(a, b string) bool { return a == "" || b == "" || a == b }
	return alike(o.Entry, other.Entry) && alike(o.CreatedBy, other.CreatedBy)
}

// wrapper matches a function that the compiler puts around the function in a go statement. The runtime shows the
// wrapper only until it has called that function.
var wrapper = regexp.MustCompile(`\.(gowrap|deferwrap)[0-9]+$|-fm$`)

// begin returns the group's origin as far as it can be compared with the same goroutines in another dump. Parts that
// aren't known are "".
//
// The outermost function of a stack isn't always the one that the goroutine began with. A goroutine that hasn't run yet
// shows the compiler's wrapper, and so does one that is still inside the wrapper. A goroutine that ends has only
// functions of the runtime left. And the runtime may leave out the outer end of a deep stack.
func (g *Group) begin() Origin {
	out := Origin{CreatedBy: g.CreatedBy}
	frames := g.Frames
	for n := len(frames); n > 0 && strings.HasPrefix(frames[n-1].Func, "runtime.goexit"); n-- {
		frames = frames[:n-1]
	}
	n := len(frames)
	if n == 0 || n == 1 && g.State == "runnable" {
		return out
	}
	if f := frames[n-1]; f.File != "" && !strings.HasPrefix(f.Func, "runtime.") && !wrapper.MatchString(f.Func) {
		out.Entry = f.Func
	}
	return out
}
