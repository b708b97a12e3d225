package healthy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// key is a place, and a state as it is compared; "" counts all states together.
type key struct{ at, state string }

// seen is what a dump has of a key.
type seen struct {
	n      int
	waited time.Duration
	group  *goroutine.Group // the largest
	state  string           // as that one prints it
}

// count counts the goroutines of a dump by place and state, and by place alone. What the runtime itself runs is left
// out: it goes with the number of processors.
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

// placesOf is where a group is: the innermost function that isn't merely a carrier of others' code. Where all are, who
// made it stands for it, if the dump tells that (made); else the function it began with does (began).
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

// carriers are packages in which goroutines wait on behalf of others, beside those of the standard library.
var carriers = []string{"golang.org/x/", "google.golang.org/", "github.com/grpc-ecosystem/", "go.etcd.io/etcd/client/", "k8s.io/utils/",
	"k8s.io/apimachinery/pkg/util/wait.", "k8s.io/apimachinery/pkg/util/runtime.", "k8s.io/client-go/util/workqueue."}

// carries reports whether a function is of a carrier. The standard library's import paths have no dot in their first
// part, and a program's own functions are main's.
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

// runtimes reports whether a goroutine is the runtime's own, or a thread's stack in a crash.
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
	// wrapper is what the compiler makes, which only a crash shows, as it does the runtime's own functions.
	wrapper = regexp.MustCompile(`\.(gowrap|deferwrap)[0-9]+$|-fm$`)
)

// Normal is a function's name without what differs between builds of the same source, and between minor versions: a
// vendor folder, a pointer receiver, type arguments, and what the compiler appends for func literals and wrappers.
func Normal(name string) string {
	name = vendored.ReplaceAllString(name, "")
	if i := strings.IndexByte(name, '['); i >= 0 {
		if j := strings.LastIndexByte(name, ']'); j > i {
			name = name[:i] + name[j+1:]
		}
	}
	return pointer.ReplaceAllString(goroutine.Declared(name), "$1")
}

// ready is how states are compared in which a goroutine runs, or could.
const ready = "ready"

// compared is a state as it is compared. Go has had more than one name for waiting on a lock.
func compared(state string) string {
	switch state {
	case "running", "runnable", "syscall", "preempted", "copystack", "GC assist marking", "GC assist wait":
		return ready
	case "sync.Mutex.Lock", "sync.RWMutex.Lock", "sync.RWMutex.RLock", "sync.WaitGroup.Wait":
		return "semacquire"
	}
	return state
}

// brief are the states that a goroutine of a process that is well isn't in for minutes.
var brief = []string{"chan send", "semacquire"}

const maxFrames = 4

// frames are the innermost ones of the largest group.
func (s *seen) frames() (out []string) {
	for _, f := range s.group.Frames[:min(len(s.group.Frames), maxFrames)] {
		out = append(out, fmt.Sprintf("%s %s:%d", f.Func, f.File, f.Line))
	}
	return append([]string{}, out...)
}
