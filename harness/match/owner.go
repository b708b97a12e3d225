package match

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// owner is the program whose process evidence is of, as far as something shows it.
type owner struct {
	program string // a component's name, or what is known of another program; "" if nothing shows it
	by      string // what shows it, after "by"
}

func (o owner) String() string {
	if o.program == "" {
		return ""
	}
	return o.program + ", by " + o.by
}

// command is the program's own package, which the main goroutine has on its stack.
var command = regexp.MustCompile(`/cmd/([a-z0-9-]+)(\.|/)`)

// commandFile is the folder of the program's own package, in the path of main's file.
var commandFile = regexp.MustCompile(`(?:^|/)cmd/([a-z0-9-]+)/`)

// mains are packages on the main goroutine's stack of programs that have none of their own there.
var mains = map[string]string{"go.etcd.io/etcd/server/v3/etcdmain.": "etcd", "k8s.io/cloud-provider/app.": "cloud-controller-manager"}

// process is the component whose dump it is. Its program is "" if no package that a component is known by is there.
func process(d *goroutine.Dump, component string, packages []string) (who owner) {
	var other owner // only where nothing names the program itself
	for _, g := range d.Groups {
		for _, f := range g.Frames {
			by := "the function " + f.Func
			if slices.ContainsFunc(packages, func(p string) bool { return strings.HasPrefix(f.Func, p) }) {
				return owner{component, by}
			}
			if m := command.FindStringSubmatch(f.Func); m != nil && who.program != component { // one program may be several
				who = owner{m[1], by}
			}
			for prefix, name := range mains {
				if strings.HasPrefix(f.Func, prefix) {
					other = owner{name, by}
				}
			}
		}
	}
	if who.program == "" {
		return other
	}
	return who
}

// whose is the process that a dump is of: a component, or another program that is known by its main goroutine.
func whose(d *goroutine.Dump, component string, packages []string) owner {
	if who := process(d, component, packages); who.program != "" {
		return who
	}
	for _, g := range d.Groups {
		at := slices.IndexFunc(g.Frames, func(f goroutine.Frame) bool { return f.Func == "main.main" })
		if at < 0 {
			continue
		}
		if m := commandFile.FindStringSubmatch(g.Frames[at].File); m != nil {
			return owner{m[1], "the file of its main function, " + g.Frames[at].File}
		}
		for i := at - 1; i >= 0; i-- { // what main has called comes first
			if m := module(g.Frames[i].Func); m != "" && !slices.Contains(libraries, m) {
				return owner{m, "what its main function has called, " + g.Frames[i].Func}
			}
		}
	}
	return owner{}
}

// libraries are modules that a main function calls to have its own function called. Of Kubernetes' own module there are
// several programs.
var libraries = []string{"github.com/spf13/cobra", "github.com/urfave/cli", "golang.org/x/sync", "k8s.io/apimachinery",
	"k8s.io/apiserver", "k8s.io/client-go", "k8s.io/component-base", "k8s.io/kubernetes", "sigs.k8s.io/controller-runtime"}

// module is about where a function's module is: its host, and one more part of its path, or two where these are an
// owner and a repository. It is "" for the standard library.
func module(function string) string {
	parts := strings.Split(function, "/")
	host := parts[0]
	if len(parts) < 2 || !strings.Contains(host, ".") {
		return ""
	}
	n := 2
	if slices.Contains([]string{"github.com", "gitlab.com", "bitbucket.org", "golang.org"}, host) {
		n = 3
	}
	parts = parts[:min(n, len(parts))]
	last := len(parts) - 1
	if n > last { // a function of the module's own root
		parts[last], _, _ = strings.Cut(parts[last], ".(")
	}
	return strings.Join(parts, "/")
}

// built reports a function that only a program of Kubernetes' own repository has: vendored there, or in a file whose
// path begins at that repository's root. Which of its programs it is, isn't said: that is for the function to tell.
func built(d *goroutine.Dump) (function string, ok bool) {
	const repository = "k8s.io/kubernetes/"
	for _, g := range d.Groups {
		for _, f := range g.Frames {
			below, own := strings.CutPrefix(f.Func, repository)
			if own && (strings.HasPrefix(below, "vendor/") || strings.HasPrefix(f.File, "pkg/")) ||
				strings.Contains(f.File, repository+"_output/") {
				return f.Func, true
			}
		}
	}
	return "", false
}

// belongs reports whether the text of a source, and what is in it without a name, is a component's.
func (s *source) belongs(component string, packages []string) (owner, bool) {
	by := ""
	switch {
	case slices.Contains(s.named, component):
		by = "the name of " + s.path
	case slices.Contains(s.from, component):
		by = "the program that its lines name"
	case s.all(component, packages):
		by = whose(s.dumps[0].Dump, component, packages).by
	case s.introduced(component):
		by = "the line in which it says its version"
	default:
		return owner{}, false
	}
	return owner{component, by}, true
}

// all reports whether a log is a component's, whatever its file is called: its lines name no writer, and it is the
// component that left the dumps in it.
func (s *source) all(component string, packages []string) bool {
	return len(s.from) == 0 && len(s.dumps) > 0 && !slices.ContainsFunc(s.dumps, func(d dumped) bool {
		return whose(d.Dump, component, packages).program != component
	})
}

// introduced reports whether a log is a component's whose lines name no writer: it is the only one that says there which
// version it is, by its name.
func (s *source) introduced(component string) bool {
	by := func(name string) bool {
		return slices.ContainsFunc(s.versions, func(v announcement) bool { return v.by == name })
	}
	others := slices.ContainsFunc(s.versions, func(v announcement) bool { return v.by != "" && v.by != component })
	return len(s.from) == 0 && by(component) && !others
}

// likely is whose evidence it is that no package and no exact name shows to be a component's. It may let a sign count
// that only that component's processes have; it is too little to rule anything out by.
func (s *source) likely(component string) owner {
	for _, d := range s.dumps {
		if function, ok := built(d.Dump); ok {
			return owner{component, "a function as Kubernetes' own builds have it, " + function}
		}
	}
	name := regexp.MustCompile(`(?:^|[^a-z0-9])` + regexp.QuoteMeta(component) + `(?:[^a-z0-9]+([a-z]+)|[^a-z0-9]|$)`)
	for _, part := range s.segments {
		if m := name.FindStringSubmatch(part); m != nil && !slices.Contains(companions, m[1]) {
			return owner{component, "the name of " + s.path}
		}
	}
	for _, v := range s.versions {
		if parsed, err := semver.Parse(strings.TrimPrefix(v.version, "v")); err == nil && v.by == "" && parsed.Major == 1 &&
			parsed.Minor >= 5 {
			return owner{component, "the line in which it says its version, " + v.version + ", as Kubernetes' programs do"}
		}
	}
	return owner{}
}

// companions are words after a component's name that make it the name of a program beside it.
var companions = []string{"operator", "proxy", "exporter", "checker", "monitor", "syncer", "cert", "certs", "extender", "controller"}

// announcement is a version, and the program that said it is its own: as the line names it, "" if it doesn't.
type announcement struct{ version, by string }

// programs are the words in which components say at their start which version they are, and whose name they have.
var programs = []struct{ words, component string }{
	{"starting kubernetes scheduler", "kube-scheduler"}, {"kubelet version", "kubelet"}, {"starting kubelet", "kubelet"},
}

// announce takes a version that a line of a log announces; from is the program that the line is known to be of.
func (s *source) announce(version, text, from string) {
	text = strings.ToLower(text)
	for _, p := range programs {
		if strings.Contains(text, p.words) {
			from = p.component
		}
	}
	if v := (announcement{version, from}); !slices.Contains(s.versions, v) {
		s.versions = append(s.versions, v)
	}
}

// announcementsOf are the versions that a source says are a component's, or nobody's by name.
func (s *source) announcementsOf(component string) []announcement {
	return slices.DeleteFunc(slices.Clone(s.versions), func(v announcement) bool { return v.by != "" && v.by != component })
}

// describe is what an owner's evidence is told to be, in a sentence about a component's incident.
func (o owner) describe(component string) string {
	switch o.program {
	case "":
		return fmt.Sprintf("nothing shows that it is of %s", component)
	case component:
		return fmt.Sprintf("it is of %s, by %s", component, o.by)
	}
	return fmt.Sprintf("it is of %s, by %s, and not of %s", o.program, o.by, component)
}
