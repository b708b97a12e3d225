package match

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/kube-relapse/relapse/harness/evidence/archive"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/evidence/metrics"
)

// profiled is a profile in its raw form, and when it was taken.
type profiled struct {
	kind bundle.Kind
	path string
	raw  []byte
	at   bundle.Window
	part string // why it may be only a part; "" if nothing shows that
}

const (
	// maxMetrics bounds a file of metrics, in bytes. It is read as a whole; an API server's is about 10 MiB.
	maxMetrics = 24 << 20
	// maxProfile bounds a profile, in bytes. It is unpacked and read as a whole.
	maxProfile = 8 << 20
)

// bounded reads all of in. It is an error if that is more than most bytes.
func bounded(in io.Reader, most int) ([]byte, error) {
	all, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	if err == nil && len(all) > most {
		err = fmt.Errorf("it is over %d bytes long: not read", most)
	}
	return all, err
}

// metrics takes from a file of metrics the version of the component, and the samples that some check asks for.
func (e *evidence) metrics(f archive.Entry, in io.Reader, as func(form, lacks string)) error {
	raw, err := bounded(in, maxMetrics)
	if err != nil {
		return err
	}
	const version, etcds, started, used = "kubernetes_build_info", "etcd_server_version", "process_start_time_seconds",
		"process_cpu_seconds_total"
	families := append(slices.Clone(e.rules.families), version, etcds, started, used)
	all, err := metrics.Read(bytes.NewReader(raw), families...)
	if err != nil {
		return err
	}
	as("Prometheus metrics", lacksMoment)
	s := newSource(f)
	at := s.took
	if at.IsZero() {
		at = time.Unix(0, 0).UTC()
	}
	for _, m := range all {
		switch m.Name {
		case version:
			s.announce(m.Labels["git_version"], "", "", "")
		case etcds:
			if !slices.Contains(s.named, "etcd") {
				continue // a scrape of several components has etcd's version next to another one's
			}
			s.announce("v"+m.Labels["server_version"], "", "etcd", "")
		case started: // the number isn't told: no other process in this place has both this time and number 1
			s.process.Time, s.process.PID, s.process.StartTicks = at, 1, int64(m.Value*100)
		case used:
			s.process.CPUSeconds = m.Value
		}
		if slices.Contains(e.rules.families, m.Name) {
			s.samples = append(s.samples,
				bundle.MetricSample{Time: at, Done: at, Name: m.Name, Labels: m.Labels, Value: m.Value})
		}
	}
	e.sources = append(e.sources, s)
	return nil
}

// word matches a text in a check that may be the name of a metric.
var word = regexp.MustCompile(`[a-z][a-z0-9]*(_[a-z0-9]+)+`)

// familiesIn returns the metric families that a check may name.
func familiesIn(spec []byte) (out []string) {
	for _, w := range word.FindAll(spec, -1) {
		name := string(w)
		out = append(out, name)
		for _, part := range []string{"_count", "_sum", "_bucket"} {
			if family, ok := strings.CutSuffix(name, part); ok {
				out = append(out, family)
			}
		}
	}
	return out
}

// profile reads a profile in pprof's protocol buffers. It is an error if the file is anything else.
func (e *evidence) profile(f archive.Entry, in io.Reader, as func(form, lacks string)) error {
	raw, err := bounded(in, maxProfile)
	if err != nil {
		return fmt.Errorf("its bytes are no text: %w", err)
	}
	if kind := http.DetectContentType(raw); strings.HasPrefix(kind, "image/") {
		return fmt.Errorf(
			"it is a picture (%s), in which nothing can be read: save what it shows as text",
			kind,
		)
	}
	p, err := profile.ParseUncompressed(raw)
	if err != nil || len(p.SampleType) == 0 {
		return fmt.Errorf("its bytes are no text and no profile: not read")
	}
	s := newSource(f)
	at := s.took
	if p.TimeNanos > 0 {
		at = time.Unix(0, p.TimeNanos).UTC()
	}
	types := func(want string) bool {
		return slices.ContainsFunc(
			p.SampleType,
			func(t *profile.ValueType) bool { return t.Type == want },
		)
	}
	one := profiled{
		path: f.Path,
		raw:  raw,
		at:   bundle.Window{Start: at, End: at.Add(time.Duration(p.DurationNanos))},
	}
	switch {
	case p.SampleType[0].Type == "goroutine":
		d := dumpOfProfile(p)
		withoutParking(d)
		s.dumps = []dumped{{&goroutine.Found{Dump: d, Line: 1}, moment{at: at}, "", nil, ""}}
		as(fmt.Sprintf("goroutine profile with %d goroutines", d.Total), lacksProfile)
	case types("cpu"):
		one.kind = bundle.CPU
		as(
			fmt.Sprintf(
				"CPU profile of %s",
				time.Duration(p.DurationNanos).Round(100*time.Millisecond),
			),
			lacksCPU,
		)
	case types("inuse_space"):
		one.kind = bundle.Heap
		as("heap profile", lacksHeap)
	default:
		as("pprof profile of "+p.SampleType[0].Type+", which no sign asks for", "")
		return nil
	}
	if one.kind != "" {
		s.profiles = []profiled{one}
		s.funcs(p)
		s.program = programOf(p)
	}
	e.sources = append(e.sources, s)
	return nil
}

// dumpOfProfile returns a goroutine profile as a dump.
func dumpOfProfile(p *profile.Profile) *goroutine.Dump {
	d := &goroutine.Dump{Format: goroutine.Profile}
	for _, s := range p.Sample {
		g := goroutine.Group{Count: int(s.Value[0])}
		for _, l := range s.Location {
			for _, at := range l.Line {
				if at.Function != nil {
					g.Frames = append(
						g.Frames,
						goroutine.Frame{
							Func: at.Function.Name,
							File: at.Function.Filename,
							Line: int(at.Line),
						},
					)
				}
			}
		}
		d.Groups, d.Total = append(d.Groups, g), d.Total+g.Count
	}
	return d
}

// programOf returns the name of the program's file that a profile has, "" if it has none that tells anything.
func programOf(p *profile.Profile) string {
	if len(p.Mapping) == 0 {
		return ""
	}
	name := path.Base(p.Mapping[0].File)
	if slices.Contains([]string{".", "/", "exe", "main", "app", "__debug_bin"}, name) || strings.ContainsAny(name, "[]() ") {
		return ""
	}
	return strings.TrimSuffix(name, ".exe")
}

// funcs keeps the functions of a profile as a single stack, which shows whose process it is.
func (s *source) funcs(p *profile.Profile) {
	var g goroutine.Group
	for _, f := range p.Function {
		g.Frames = append(g.Frames, goroutine.Frame{Func: f.Name, File: f.Filename})
	}
	s.functions = &goroutine.Dump{Format: goroutine.Profile, Groups: []goroutine.Group{g}}
}
