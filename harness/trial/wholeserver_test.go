package trial_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/pprof/profile"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// What a program that stands in for a kube-apiserver can be: these words in its file.
const (
	leaks      = "leaks"      // while etcd is slow its deletes leave goroutines behind, for good
	dead       = "dead"       // it answers nobody
	mute       = "mute"       // it is never ready
	crashes    = "crashes"    // once etcd is slow
	tires      = "tires"      // it is ready at first, and never again once it has been asked for five seconds
	unmeasured = "unmeasured" // it has no metrics
)

// server is a kube-apiserver that does as its program says, with the proxy between it and etcd.
type server struct {
	*clustertest.Component
	api      *clustertest.API
	programs map[string]string // by SHA-256: what runs is told by what was installed

	mu       sync.Mutex
	arms     []control.ConnectionRecord // of the proxy, oldest first
	unlifted int                        // how many more requests to disarm fail
	asked    time.Time                  // for its readiness, first
	requests float64                    // to etcd, and how long they took
	seconds  float64
	left     int // goroutines
}

// serve scripts a cluster's kube-apiserver and its proxy.
func serve(c *clustertest.Cluster, programs map[string]string) *server {
	s := &server{Component: c.Component(cluster.ControlPlane, "kube-apiserver"), api: c.API(), programs: programs}
	c.Node(cluster.ControlPlane).Handle(control.Connections["etcd"].BinaryPath(), s.proxy)
	c.API().Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if s.is(dead) {
			panic(http.ErrAbortHandler)
		}
		return false
	})
	for path, answer := range map[string]func(path string) (string, error){
		"/readyz": s.readyz, "/livez": s.readyz, "/metrics": s.metrics, "/debug/pprof/goroutine": s.goroutines,
		"/debug/pprof/heap": s.heap,
	} {
		s.Answer(path, func(path string) ([]byte, error) {
			time.Sleep(2 * time.Millisecond) // as long as an answer takes, by the bubble's clock
			if s.is(dead) {
				return nil, errors.New("connection refused")
			}
			text, err := answer(path)
			return []byte(text), err
		})
	}
	return s
}

// is reports whether the program that runs has a word.
func (s *server) is(word string) bool {
	id, err := s.Identity(context.Background(), true)
	return err == nil && strings.Contains(s.programs[id.SHA256], word)
}

func (s *server) readyz(path string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked.IsZero() {
		s.asked = time.Now()
	}
	if s.is(mute) || s.is(tires) && time.Since(s.asked) > 5*time.Second {
		return "", &cluster.StatusError{Path: path, Code: 500, Status: "500 Internal Server Error", Text: "[-]etcd failed"}
	}
	return "ok", nil
}

// metrics tell of ten more deletes at every look.
func (s *server) metrics(path string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.is(unmeasured) {
		return "", errors.New("404 Not Found")
	}
	s.requests, s.seconds = s.requests+10, s.seconds+10*(time.Millisecond+s.latency()).Seconds()
	return fmt.Sprintf("# TYPE etcd_request_duration_seconds histogram\netcd_request_duration_seconds_sum{operation=\"delete\"} %g\n"+
		"etcd_request_duration_seconds_count{operation=\"delete\"} %g\n", s.seconds, s.requests), nil
}

// goroutines are the main one and those that were left.
func (s *server) goroutines(path string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasSuffix(path, "debug=1") {
		out := fmt.Sprintf("goroutine profile: total %d\n1 @ 0x1\n#\t0x1\tmain.main+0x1d\t/src/main.go:10\n", 1+s.left)
		if s.left > 0 {
			out += fmt.Sprintf("\n%d @ 0x2\n#\t0x2\tk8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection.func1+0x1d\t/src/store.go:1290\n", s.left)
		}
		return out, nil
	}
	out := "goroutine 1 [select]:\nmain.main()\n\t/src/main.go:10 +0x1d\n"
	for i := range s.left {
		out += fmt.Sprintf("\ngoroutine %d [chan send]:\nk8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection.func1()\n\t/src/store.go:1290 +0x1d\n"+
			"created by k8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection in goroutine 9\n\t/src/store.go:1280 +0x1d\n", 100+i)
	}
	return out, nil
}

// heap is a profile of nothing: what is kept is not these trials' matter.
func (s *server) heap(string) (string, error) {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}}}
	var b strings.Builder
	err := p.Write(&b)
	return b.String(), err
}

// latency is what the proxy adds now; the caller holds mu.
func (s *server) latency() time.Duration {
	for i := range s.arms {
		if a := &s.arms[i]; a.Armed() && !time.Now().Before(a.ExpiresAt) {
			a.EndedAt, a.Expired = &a.ExpiresAt, true
		} else if a.Armed() {
			return time.Duration(a.Latency.Latency)
		}
	}
	return 0
}

// proxy is the program of the proxy before etcd: ctl and probe.
func (s *server) proxy(ctx context.Context, stdin io.Reader, argv []string) ([]byte, error) {
	in, err := io.ReadAll(stdin)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	added, now := s.latency(), time.Now()
	what := argv[1]
	if what == "ctl" {
		what = argv[len(argv)-1]
	}
	switch what {
	case "arm-latency":
		var a control.ArmConnectionLatency
		if err := json.Unmarshal(in, &a); err != nil {
			return nil, err
		}
		s.arms = append(s.arms, control.ConnectionRecord{Latency: &a.ConnectionLatency, Life: control.Life{Arm: a.Arm, Fault: control.FaultLatency,
			ArmedAt: now, ExpiresAt: now.Add(time.Duration(a.Expires))}})
		if s.is(leaks) {
			s.left += 7
		}
		if s.is(crashes) {
			if err := s.Signal(ctx, syscall.SIGKILL, cluster.Identity{}); err != nil {
				return nil, err
			}
		}
		return json.Marshal(s.arms[len(s.arms)-1])
	case "disarm":
		if s.unlifted > 0 {
			s.unlifted--
			return nil, errors.New("exit status 1: no such socket")
		}
		d := control.Disarmed{IDs: []string{}}
		if added > 0 {
			last := &s.arms[len(s.arms)-1]
			last.EndedAt, d.IDs = &now, []string{last.ID}
		}
		return json.Marshal(d)
	case "state":
		return json.Marshal(control.ConnectionState{Now: now, Arms: s.arms})
	case "probe":
		var ask control.ConnectionAsk
		if err := json.Unmarshal(in, &ask); err != nil {
			return nil, err
		}
		p := control.ConnectionProbe{At: now, Limit: ask.Limit, Healthy: true}
		for range ask.Requests {
			p.Through = append(p.Through, control.Duration(time.Millisecond+added))
			p.Direct = append(p.Direct, control.Duration(time.Millisecond))
		}
		s.mu.Unlock()
		time.Sleep(time.Duration(ask.Requests+1) * (time.Millisecond + added)) // a handshake and the answers
		s.mu.Lock()
		return json.Marshal(p)
	default:
		return nil, fmt.Errorf("exit status 2: no command %q", what)
	}
}

// armed is how often a fault was armed.
func (s *server) armed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.arms)
}

// slow reports whether a fault is in force.
func (s *server) slow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latency() > 0
}
