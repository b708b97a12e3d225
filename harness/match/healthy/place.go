package healthy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// key is a place, and a state as compared returns it; "" stands for all states together.
type key struct{ at, state string }

// seen is what a dump has for one key.
type seen struct {
	n      int
	waited time.Duration
	group  *goroutine.Group // the largest group
	state  string           // as the largest group prints it
}

// count counts the goroutines of a dump by place and state, and by place alone. Goroutines of the runtime are left out,
// because their number depends on the number of processors.
func count(d *goroutine.Dump) map[key]*seen {
	out := map[key]*seen{}
	for i := range d.Groups {
		g := &d.Groups[i]
		if runtimes(g) {
			continue
		}
		made, began := placesOf(g)
		at := []key{{began, ""}}
		if d.Format.HasStates() {
			at = append(at, key{made, compared(g.State)})
			if made != began {
				at = append(at, key{made, ""})
			}
		}
		for _, k := range at {
			s := out[k]
			if s == nil {
				s = &seen{}
				out[k] = s
			}
			if s.group == nil || g.Count > s.group.Count {
				s.group, s.state = g, g.State
			}
			s.n, s.waited = s.n+g.Count, max(s.waited, g.MaxWait)
		}
	}
	return out
}

// placesOf returns the place of a group: the innermost function that isn't merely a carrier of others' code. If all
// functions are carriers, made is the function that created the goroutine, if the dump tells it, and began is the
// function that the goroutine began with.
func placesOf(g *goroutine.Group) (made, began string) {
	for _, f := range g.Frames {
		if name := Normal(f.Func); !carries(name) && !wrapper.MatchString(f.Func) {
			return name, name
		}
	}
	for _, f := range slices.Backward(g.Frames) {
		if began = Normal(f.Func); !strings.HasPrefix(began, "runtime.") && !wrapper.MatchString(f.Func) {
			break
		}
	}
	if g.CreatedBy == "" {
		return began, began
	}
	return "created by " + Normal(g.CreatedBy), began
}

// carriers are packages in which goroutines wait on behalf of others, in addition to the standard library.
var carriers = []string{
	"golang.org/x/",
	"google.golang.org/",
	"github.com/grpc-ecosystem/",
	"go.etcd.io/etcd/client/",
	"k8s.io/utils/",
	"k8s.io/apimachinery/pkg/util/wait.",
	"k8s.io/apimachinery/pkg/util/runtime.",
	"k8s.io/client-go/util/workqueue.",
}

// carries reports whether a function belongs to a carrier. The standard library's import paths have no dot in their
// first part, and a program's own functions are in package main.
func carries(name string) bool {
	for _, c := range carriers {
		if strings.HasPrefix(name, c) {
			return true
		}
	}
	pkg, _, slash := strings.Cut(name, "/")
	if !slash {
		pkg, _, _ = strings.Cut(name, ".")
		return pkg != "main"
	}
	return !strings.Contains(pkg, ".")
}

// runtimes reports whether a goroutine belongs to the runtime, or is a thread's stack in a crash.
func runtimes(g *goroutine.Group) bool {
	if g.CreatedBy != "" && !strings.HasPrefix(g.CreatedBy, "runtime.") {
		return false
	}
	for _, f := range g.Frames {
		if !strings.HasPrefix(f.Func, "runtime.") {
			return false
		}
	}
	return true
}

var (
	vendored = regexp.MustCompile(`^.*/vendor/|^vendor/`)
	pointer  = regexp.MustCompile(`\(\*([^()]+)\)`)
	// wrapper matches functions that the compiler makes. Only a crash shows them, as it shows the runtime's own
	// functions.
	wrapper = regexp.MustCompile(`\.(gowrap|deferwrap)[0-9]+$|-fm$`)
)

// Normal returns a function's name without the parts that differ between builds of the same source, or between minor
// versions: a vendor folder, a pointer receiver, type arguments, and what the compiler appends for func literals and
// wrappers.
func Normal(name string) string {
	name = vendored.ReplaceAllString(name, "")
	if i := strings.IndexByte(name, '['); i >= 0 {
		if j := strings.LastIndexByte(name, ']'); j > i {
			name = name[:i] + name[j+1:]
		}
	}
	return pointer.ReplaceAllString(goroutine.Declared(name), "$1")
}

// ready stands for all states in which a goroutine runs, or could run.
const ready = "ready"

// compared returns a state in the form for comparison. Go has had several names for waiting on a lock.
func compared(state string) string {
	switch state {
	case "running", "runnable", "syscall", "preempted", "copystack", "GC assist marking", "GC assist wait":
		return ready
	case "sync.Mutex.Lock", "sync.RWMutex.Lock", "sync.RWMutex.RLock", "sync.WaitGroup.Wait":
		return "semacquire"
	}
	return state
}

// brief are the states in which a goroutine of a healthy process doesn't stay for minutes.
var brief = []string{"chan send", "semacquire"}

const maxFrames = 4

// frames returns the innermost frames of the largest group.
func (s *seen) frames() (out []string) {
	for _, f := range s.group.Frames[:min(len(s.group.Frames), maxFrames)] {
		out = append(out, fmt.Sprintf("%s %s:%d", f.Func, f.File, f.Line))
	}
	return append([]string{}, out...)
}
