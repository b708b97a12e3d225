// Package goroutine reads Go goroutine dumps and keeps groups of like goroutines, never the goroutines themselves.
//
// It reads what net/http/pprof and runtime/pprof write at debug=1 and debug=2, what a panicking or SIGQUIT-ed
// program prints, and either of them wrapped line by line in a log: CRI, docker's json-file, journald's short
// formats and JSON, timestamps, klog headers, or a dump held in one string field of a JSON line.
//
// The two formats differ in what they can prove. debug=1 has the exact total, taken in one short pause, but neither
// wait states nor creators, and it leaves out the runtime's own frames at the top of a stack: a goroutine blocked in
// a channel send shows the function that sends as its first frame, exactly like one that sleeps there (seen with Go
// 1.26; only raw addresses of gopark and chansend remain). debug=2 has states, ages and ids, but is cut without
// notice at 64 MiB. So counts come from debug=1 and states from debug=2.
package goroutine

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Format says how a dump was written.
type Format int

const (
	// Profile is pprof's debug=1: counted stacks, no states, no ids.
	Profile Format = iota + 1
	// Stacks is pprof's debug=2 and what a crashing program prints: one block per goroutine.
	Stacks
)

// String returns the value of pprof's debug parameter for the format.
func (f Format) String() string {
	switch f {
	case Profile:
		return "debug=1"
	case Stacks:
		return "debug=2"
	}
	return "unknown format"
}

// HasStates reports whether the format tells what a goroutine waits for. Where it is false, a Match with a State
// finds nothing, which means "not known", never "none".
func (f Format) HasStates() bool { return f == Stacks }

// Frame is one call of a stack.
//
// Func is the full name with its import path, without arguments, as in `k8s.io/x/pleg.(*GenericPLEG).Relist`. It is
// an address (`0x4f2a`) where debug=1 had no symbol, `non-Go function`, or a mark such as `...additional frames
// elided...` where the runtime left frames out. File and Line are "" and 0 in those cases.
type Frame struct {
	Func, File string
	Line       int
}

// Group is a set of goroutines with the same state, the same functions at the same lines, and the same creator.
type Group struct {
	// State is the wait reason as printed, as in `chan send` or `select (no cases)`; "" in a Profile. The runtime's
	// remarks `(scan)`, `(leaked)` and `(durable)` are left out of it.
	State string
	// Count is the number of goroutines.
	Count int
	// Frames is the stack, innermost call first.
	Frames []Frame
	// CreatedBy is the function of the go statement and CreatedAt where that statement is; the latter's Func is
	// empty. Both are zero for the main goroutine and in a Profile.
	CreatedBy string
	CreatedAt Frame
	// IDs are the goroutines' ids in the order of the dump; nil in a Profile.
	IDs []uint64
	// MinWait and MaxWait bound how long the goroutines have been blocked, in whole minutes. 0 means that none was
	// printed, as for waits under a minute and for those that no garbage collection has seen yet.
	MinWait, MaxWait time.Duration
	// Locked is how many of the goroutines are locked to their thread; 0 in a Profile.
	Locked int
	// Labels are the pprof labels that every goroutine of the group carries with the same value.
	Labels map[string]string
}

// Dump is one dump as Read returns it.
type Dump struct {
	Format Format
	// Total is the header's own total in a Profile, and the number of goroutines read in Stacks.
	Total int
	// Groups are in the order in which their first member appears.
	Groups []Group
	// Truncated reports that goroutines or frames are missing: the input ends inside a line or a stack, a stack has no
	// frames, a line was longer than 1 MiB, the dump has the runtime's limit of 64 MiB, or the counts of a Profile
	// don't add up to its total. A dump that is cut exactly between two goroutines can't be told from a whole one.
	Truncated bool
	// Arena is the part above the lower 32 bits that more than half of the heap addresses have in common, among the
	// arguments on the first stacks; 0 if there is none, as in a Profile. Since Go 1.26 it differs from process to
	// process; earlier ones all have 0xc0.
	Arena uint64
}

// Match chooses groups. The zero Match chooses all.
type Match struct {
	// Func is a function's name without arguments, with or without the leading part of its import path:
	// `pleg.(*GenericPLEG).Relist` and `kubelet/pleg.(*GenericPLEG).Relist` both match
	// `k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).Relist`, while `Relist` and `eg.(*GenericPLEG).Relist`
	// don't. "" matches any stack, even an empty one.
	Func string
	// FoldCase ignores the case of Func: Kubernetes renamed relist to Relist on its way.
	FoldCase bool
	// State is a wait state, compared whole; "" matches any. It never matches in a Profile: see Format.HasStates.
	State string
	// Closures includes the functions to which Go gives a name derived from Func's: func literals inside it (`.func1`,
	// `.func2.1`), the wrappers of its go and defer statements (`.gowrap1`, `.deferwrap1`) and the bodies of its range
	// loops (`-range1`).
	Closures bool
	// Depth, if above 0, looks for Func in the first Depth frames only: 1 is the call that is blocked.
	Depth int
}

// Count returns how many goroutines m chooses.
func (d *Dump) Count(m Match) int {
	n := 0
	for i := range d.Groups {
		if m.matches(&d.Groups[i]) {
			n += d.Groups[i].Count
		}
	}
	return n
}

// Find returns the groups that m chooses, in the dump's order. They share memory with d.
func (d *Dump) Find(m Match) []Group {
	var found []Group
	for i := range d.Groups {
		if m.matches(&d.Groups[i]) {
			found = append(found, d.Groups[i])
		}
	}
	return found
}

// Ranked returns the groups in the order in which to look for what burns a CPU. Goroutines that run or could run come
// first, because they have something to do while all others wait. Then the smaller group comes first, and then the
// dump's order decides. A goroutine 0 is a thread's own stack, which a crash shows as idle.
func (d *Dump) Ranked() []Group {
	ranked := slices.Clone(d.Groups)
	slices.SortStableFunc(ranked, func(a, b Group) int {
		waits := func(g Group) int {
			if g.Ready() {
				return 0
			}
			return 1
		}
		return cmp.Or(waits(a)-waits(b), a.Count-b.Count)
	})
	return ranked
}

// Origin is the part of a stack that stays the same as long as the goroutine lives, whatever it waits for.
type Origin struct{ Entry, CreatedBy string }

// Origin returns the outermost function of the group's stack, and the function that created the goroutines.
func (g *Group) Origin() Origin {
	out := Origin{CreatedBy: g.CreatedBy}
	if n := len(g.Frames); n > 0 {
		out.Entry = g.Frames[n-1].Func
	}
	return out
}

// Ready reports whether the goroutines run or could run.
func (g Group) Ready() bool { return g.State == "running" || g.State == "runnable" }

// Chooses reports whether m chooses a group.
func (m Match) Chooses(g Group) bool { return m.matches(&g) }

func (m Match) matches(g *Group) bool {
	if m.State != "" && m.State != g.State {
		return false
	}
	return m.Func == "" || m.Frame(*g) >= 0
}

// Frame returns the index of the innermost frame of g that Func is about, -1 if there is none.
func (m Match) Frame(g Group) int {
	if m.Func == "" {
		return -1
	}
	frames := g.Frames
	if m.Depth > 0 {
		frames = frames[:min(m.Depth, len(frames))]
	}
	return slices.IndexFunc(frames, func(f Frame) bool { return m.matchesFunc(f.Func) })
}

// Line returns the index of the first line that calls a function that Func is about, in a stack as Group.Write writes
// it or a dump has it. It is -1 if there is none.
func (m Match) Line(lines []string) int {
	if m.Func == "" {
		return -1
	}
	return slices.IndexFunc(lines, func(l string) bool {
		name, _, call := cutLast(strings.TrimSpace(l), "(")
		return call && !strings.HasPrefix(l, "\t") && m.matchesFunc(name)
	})
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func (m Match) matchesFunc(name string) bool {
	if strings.IndexByte(name, '[') >= 0 && strings.IndexByte(m.Func, '[') < 0 {
		name = withoutTypes(name)
	}
	if m.Closures {
		name = Declared(name)
	}
	cut := len(name) - len(m.Func)
	if cut < 0 || cut > 0 && name[cut-1] != '/' {
		return false
	}
	if m.FoldCase {
		return strings.EqualFold(name[cut:], m.Func)
	}
	return name[cut:] == m.Func
}

// typed matches type arguments, which a dump shows as three dots and a profile in full.
var typed = regexp.MustCompile(`\[[^\[\]]*\]`)

// withoutTypes returns a function's name without type arguments: what became generic has the same name.
func withoutTypes(name string) string {
	for typed.MatchString(name) { // the innermost first
		name = typed.ReplaceAllString(name, "")
	}
	return name
}

// closure matches the part of a name that cmd/compile appends to the function in the source (closureName in
// ir/func.go).
var closure = regexp.MustCompile(`\.(func|gowrap|deferwrap)[0-9]|-range[0-9]|-fm$`)

// Declared returns the function in the source that the name of a func literal or of a wrapper belongs to.
func Declared(name string) string {
	dir := strings.LastIndexByte(name, '/') + 1 // an import path may hold anything
	if at := closure.FindStringIndex(name[dir:]); at != nil {
		return name[:dir+at[0]]
	}
	return name
}
