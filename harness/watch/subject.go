package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/metrics"
)

// Subject is the Go program to watch. Self, At and Pod return one.
type Subject struct {
	name string
	get  func(ctx context.Context, path string) (io.ReadCloser, error)
	// process says which process the program is, so that a restart is noticed.
	process func(ctx context.Context) (bundle.IdentitySample, error)
}

// Self is the program that calls it. A suite with envtest runs its manager there. No endpoint is needed.
func Self() Subject { return Subject{name: "this-program", get: ownProfile, process: ownProcess} }

// ownProfile answers a path of net/http/pprof, which would also serve the profiles to others if it were imported.
func ownProfile(_ context.Context, p string) (io.ReadCloser, error) {
	u, err := url.Parse(p)
	if err != nil {
		return nil, err
	}
	profile := pprof.Lookup(path.Base(u.Path))
	if profile == nil || !strings.HasPrefix(u.Path, "/debug/pprof/") {
		return nil, fmt.Errorf(
			"this program is asked for its profiles only: %w",
			errors.ErrUnsupported,
		)
	}
	if u.Query().Get("gc") == "1" {
		runtime.GC()
	}
	debug, _ := strconv.Atoi(u.Query().Get("debug")) // without it, 0 as for net/http/pprof
	var b bytes.Buffer
	return io.NopCloser(&b), profile.WriteTo(&b, debug)
}

func ownProcess(context.Context) (s bundle.IdentitySample, err error) {
	var id cluster.Identity
	stat, err := os.ReadFile("/proc/self/stat")
	if err == nil {
		err = id.ParseStat(string(stat))
	}
	if err != nil {
		return s, fmt.Errorf("asking which process this program is: %w", err)
	}
	if text, err := os.ReadFile(cluster.RandomizeFile); err == nil { // else it is not known, and the check says so
		id.Randomize, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	return bundle.IdentitySample{
		Time:       time.Now().UTC(),
		PID:        os.Getpid(),
		StartTicks: id.StartTicks,
		CPUSeconds: float64(id.CPUTicks) / cluster.TicksPerSecond,
		Arguments:  &bundle.Arguments{Address: id.ArgStart, Randomize: id.Randomize},
	}, nil
}

// Endpoint is where a program serves its profiles and its metrics.
type Endpoint struct {
	Profiles string       // what comes before /debug/pprof/: http://127.0.0.1:8082
	Metrics  string       // the whole URL: http://127.0.0.1:8080/metrics. It has process_start_time_seconds
	Client   *http.Client // nil for http.DefaultClient
}

// At is a program that serves its profiles and metrics over HTTP. A manager of controller-runtime does, with
// PprofBindAddress and Metrics.BindAddress.
func At(e Endpoint) Subject {
	if e.Client == nil {
		e.Client = http.DefaultClient
	}
	return Subject{name: "controller", get: e.get, process: e.process}
}

// Pod is a program in a pod, which is asked through the API server. profiles and metrics are ports that serve plain
// HTTP. The user of cfg needs the right to get pods/proxy.
func Pod(cfg *rest.Config, namespace, name string, profiles, metrics int) (Subject, error) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return Subject{}, fmt.Errorf("watching pod %s/%s: %w", namespace, name, err)
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return Subject{}, fmt.Errorf("watching pod %s/%s: %w", namespace, name, err)
	}
	proxy := func(port int) string {
		return base.JoinPath("api/v1/namespaces", namespace, "pods", fmt.Sprintf("%s:%d", name, port), "proxy").
			String()
	}
	return At(
		Endpoint{Profiles: proxy(profiles), Metrics: proxy(metrics) + "/metrics", Client: client},
	), nil
}

func (e Endpoint) get(ctx context.Context, path string) (io.ReadCloser, error) {
	at := strings.TrimSuffix(e.Profiles, "/") + path
	if path == "/metrics" {
		at = e.Metrics
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	resp, err := e.Client.Do(req)
	if err != nil {
		return nil, err
	}
	return cluster.Body(resp, path)
}

// process tells the process by its start time, in the ticks of Linux. Its id isn't known: 1 stands for it.
func (e Endpoint) process(ctx context.Context) (s bundle.IdentitySample, err error) {
	const started, used = "process_start_time_seconds", "process_cpu_seconds_total"
	body, err := e.get(ctx, "/metrics")
	if err != nil {
		return s, fmt.Errorf("asking for metrics at %s: %w", e.Metrics, err)
	}
	defer body.Close()
	all, err := metrics.Read(body, started, used)
	if err != nil {
		return s, fmt.Errorf("asking for metrics at %s: %w", e.Metrics, err)
	}
	s.Time = time.Now().UTC()
	for _, m := range all {
		switch m.Name {
		case started:
			s.PID, s.StartTicks = 1, int64(m.Value*cluster.TicksPerSecond)
		case used:
			s.CPUSeconds = m.Value
		}
	}
	if s.PID == 0 {
		return s, fmt.Errorf(
			"the metrics at %s don't tell when the process started: want %s",
			e.Metrics,
			started,
		)
	}
	return s, nil
}

// component is a subject as collectors know components.
type component struct{ Subject }

func (c component) Name() string       { return c.name }
func (c component) Node() cluster.Node { return nil }

func (c component) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	return c.get(ctx, path)
}

func (c component) Logs(context.Context) (io.ReadCloser, error) {
	return nil, c.unable("has no log here")
}

func (c component) Signal(context.Context, os.Signal, cluster.Identity) error {
	return c.unable("gets no signals from here")
}

func (c component) Identity(context.Context, bool) (cluster.Identity, error) {
	return cluster.Identity{}, c.unable("is no process of a cluster of relapse")
}

func (c component) Abilities() cluster.ComponentAbilities { return cluster.ComponentAbilities{} }

func (c component) unable(why string) error {
	return fmt.Errorf("%s %s: %w", c.name, why, errors.ErrUnsupported)
}

// place is somebody else's cluster, of which only the API server is known.
type place struct {
	cluster.Machines[cluster.Node]
	cfg *rest.Config
}

var errUnknown = fmt.Errorf(
	"only the API server of this cluster is known: %w",
	errors.ErrUnsupported,
)

func (p place) Name() string             { return p.cfg.Host }
func (p place) RESTConfig() *rest.Config { return rest.CopyConfig(p.cfg) }

func (p place) Components(string) []cluster.Component { return nil }

func (p place) Workload(context.Context, cluster.Workload) (cluster.Component, error) {
	return nil, errUnknown
}

func (p place) CallableAddress(context.Context) (string, error) { return "", errUnknown }

func (p place) Abilities() cluster.ClusterAbilities { return cluster.ClusterAbilities{} }
