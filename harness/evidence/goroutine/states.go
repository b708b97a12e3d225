package goroutine

// States are the states that a dump at debug=2 prints, of all versions of Go since 1.6, without what stands behind them:
// minutes, "locked to thread", "(scan)". They are the runtime's waitReasonStrings and gStatusStrings.
var States = []string{
	"chan receive", "chan receive (nil chan)", "chan receive (synctest)", "chan receive (durable)",
	"chan send", "chan send (nil chan)", "chan send (synctest)", "chan send (durable)",
	"select", "select (no cases)", "select (synctest)", "select (durable)",
	"semacquire", "semarelease", "sleep", "IO wait", "syscall", "running", "runnable", "preempted", "idle", "waiting",
	"sync.Cond.Wait", "sync.Mutex.Lock", "sync.RWMutex.Lock", "sync.RWMutex.RLock", "sync.WaitGroup.Wait",
	"sync.WaitGroup.Wait (synctest)", "sync.WaitGroup.Wait (durable)", "synctest.Run", "synctest.Wait", "coroutine",
	"finalizer wait", "cleanup wait", "force gc (idle)", "panicwait", "debug call", "dumping heap", "copystack",
	"garbage collection", "garbage collection scan", "GC assist marking", "GC assist wait", "GC sweep wait",
	"GC scavenge wait", "GC worker (idle)", "GC worker (active)", "GC worker init", "GC mark termination",
	"GC background sweeper wait", "GC weak to strong wait", "wait for GC cycle", "wait until GC ends",
	"concurrent sweep wait", "flushing proc caches", "stopping the world", "trace reader (blocked)",
	"trace goroutine status", "trace proc status", "page trace flush", "timer goroutine (idle)", "dead",
	"GOMAXPROCS updater (idle)",
}
