package match

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// owner is the program whose process left the evidence, as far as something shows that.
type owner struct {
	program string // a component's name, or what is known of another program; "" if nothing shows it
	by      string // what shows it; follows the word "by". Without a program, what is missing; "" if there is no more to say
}

func (o owner) String() string {
	if o.program == "" {
		return ""
	}
	return o.program + ", by " + o.by
}

// command matches the package of the program's own command, which the main goroutine has on its stack.
var command = regexp.MustCompile(`/cmd/([a-z0-9-]+)(\.|/)`)

// commandFile matches the folder of the program's own command in the path of main's file.
var commandFile = regexp.MustCompile(`(?:^|/)cmd/([a-z0-9-]+)/`)

// mains maps packages to programs. The main goroutine has them on its stack where it has no package of the command.
var mains = map[string]string{
	"go.etcd.io/etcd/server/v3/etcdmain.": "etcd",
	"k8s.io/cloud-provider/app.":          "cloud-controller-manager",
}

// process returns the program whose dump it is, by the packages on its stacks: those of the component, that of a
// command, or one of mains. One program may contain several commands; then the component is preferred, but for linked.
// The program is "" if none of these packages is there.
func process(d *goroutine.Dump, component string, packages []string) (who owner) {
	var other owner // used only if nothing names the program itself
	if who := linkedIn(d); who.program != "" && who.program != component {
		return who
	}
	if slices.Contains(kubernetes, component) {
		if who := anothersMain(d); who.program != "" {
			return who
		}
		if who := fromModules(d); who.program != "" {
			return who
		}
	}
	if component == "etcd" && !ofMains(d) { // it may run within another program's process
		if who := anothersMain(d); who.program != "" {
			return who
		}
	}
	for _, g := range d.Groups {
		for _, f := range g.Frames {
			by := "the function " + f.Func
			if of(packages, f.Func) {
				if caller := outermost(g); caller != "" && slices.Contains(kubernetes, component) {
					return owner{module(caller), "the function " + caller + ", which calls the component's own"}
				}
				return owner{component, by}
			}
			if m := command.FindStringSubmatch(f.Func); m != nil && who.program != component { // keep the component
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

// outermost returns the function of another program that has begun a goroutine, or that calls everything below it there;
// "" if the first function from outside that is of neither the standard library nor a library is of Kubernetes.
func outermost(g goroutine.Group) string {
	outside := []string{g.CreatedBy}
	for _, f := range slices.Backward(g.Frames) {
		outside = append(outside, f.Func)
	}
	for _, function := range outside {
		if i := strings.LastIndex(function, "/vendor/"); i >= 0 {
			function = function[i+len("/vendor/"):]
		}
		switch m := module(function); {
		case strings.HasPrefix(m, "k8s.io/") || distributions.MatchString(m):
			return ""
		case m == "" || slices.Contains(libraries, m):
		default:
			return function
		}
	}
	return ""
}

// of reports whether a function is below one of some packages, whoever vendored it.
func of(packages []string, function string) bool {
	own := function
	if i := strings.LastIndex(function, "/vendor/"); i >= 0 {
		own = function[i+len("/vendor/"):]
	}
	return slices.ContainsFunc(packages, func(p string) bool { return strings.HasPrefix(function, p) || strings.HasPrefix(own, p) })
}

// whose returns the program whose dump it is: the one that process finds, or else another program that is known by its
// main goroutine.
func whose(d *goroutine.Dump, component string, packages []string) owner {
	if who := process(d, component, packages); who.program != "" {
		return who
	}
	for _, g := range d.Groups {
		at := slices.IndexFunc(
			g.Frames,
			func(f goroutine.Frame) bool { return f.Func == "main.main" },
		)
		if at < 0 {
			continue
		}
		if m := commandFile.FindStringSubmatch(g.Frames[at].File); m != nil {
			return owner{m[1], "the file of its main function, " + g.Frames[at].File}
		}
		for i := at - 1; i >= 0; i-- { // the functions that main has called come before it
			if m := module(g.Frames[i].Func); m != "" && !slices.Contains(libraries, m) {
				return owner{m, "what its main function has called, " + g.Frames[i].Func}
			}
		}
	}
	return owner{}
}

// libraries are modules that a main function calls only to have the program's own function called. Kubernetes' own
// module is among them, because several programs are from it.
var libraries = []string{
	"github.com/spf13/cobra",
	"github.com/emicklei/go-restful",
	"github.com/urfave/cli",
	"go.opentelemetry.io/contrib",
	"golang.org/x/net",
	"golang.org/x/sync",
	"google.golang.org/grpc",
	"k8s.io/apimachinery",
	"k8s.io/apiserver",
	"k8s.io/client-go",
	"k8s.io/component-base",
	"k8s.io/kubernetes",
	"sigs.k8s.io/controller-runtime",
}

// module returns about the path of a function's module: its host and one more part, or two parts where these are an
// owner and a repository. It returns "" for the standard library.
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

// built returns a function that only a program of Kubernetes' own repository has: it is vendored there, or in a file
// whose path begins at that repository's root. Which of the repository's programs it is, only the function itself can
// tell.
func built(d *goroutine.Dump) (function string, ok bool) {
	const repository = "k8s.io/kubernetes/"
	for _, g := range d.Groups {
		for _, f := range g.Frames {
			below, own := strings.CutPrefix(f.Func, repository)
			if own && (strings.HasPrefix(below, "vendor/") || strings.HasPrefix(f.File, "pkg/") || strings.Contains(f.File, distribution)) ||
				strings.HasPrefix(f.File, "vendor/k8s.io/") || strings.Contains(f.File, repository+"_output/") {
				return f.Func, true
			}
		}
	}
	return "", false
}

// profiledProgram returns the program whose profiles a source has: the component, where their functions show it, or else
// the one that they name. The name of a program that runs others in its own process says nothing.
func (s *source) profiledProgram(component string, packages []string) owner {
	who := process(s.functions, component, packages)
	if who.program != component && s.program != "" && !isHost(s.program) {
		return owner{s.program, "the file that pprof names"}
	}
	return who
}

// belongs reports whether a component owns the text of a source, and what is in it without a name. The owner says what
// shows that.
func (s *source) belongs(component string, packages []string) (owner, bool) {
	by := ""
	switch {
	case s.watch != nil:
		who := s.watch.owner(component)
		return who, who.program != ""
	case slices.Contains(s.named, component):
		by = "the name of " + s.path
	case slices.Contains(s.from, component):
		by = "the program that its lines name"
	case s.all(component, packages):
		by = s.whose(s.dumps[0], component, packages).by
	case s.introduced(component):
		by = "the line in which it says its version"
	default:
		return owner{}, false
	}
	return owner{component, by}, true
}

// all reports whether a log is a component's, whatever its file is called: the lines name no writer, and all dumps in
// the log are the component's.
func (s *source) all(component string, packages []string) bool {
	return len(s.from) == 0 && len(s.dumps) > 0 && !slices.ContainsFunc(s.dumps, func(d dumped) bool {
		return s.whose(d, component, packages).program != component
	})
}

// introduced reports whether a log whose lines name no writer is a component's: the component is the only one that
// announces its version there by its name.
func (s *source) introduced(component string) bool {
	by := func(name string) bool {
		return slices.ContainsFunc(s.versions, func(v announcement) bool { return v.by == name })
	}
	others := slices.ContainsFunc(
		s.versions,
		func(v announcement) bool { return v.by != "" && v.by != component },
	)
	return len(s.from) == 0 && by(component) && !others
}

// likely returns the probable owner of evidence that no package and no exact name shows to be a component's. That is
// enough to count a sign that only the component's processes have, and too little to rule anything out.
func (s *source) likely(component string) owner {
	if s.watch != nil {
		return s.watch.owner(component)
	}
	if len(s.from) > 0 && !slices.ContainsFunc(s.from, func(name string) bool { return name == component || isHost(name) }) {
		return owner{} // its lines name another program
	}
	if at := slices.IndexFunc(s.from, isHost); at >= 0 && slices.Contains(kubernetes, component) {
		return owner{
			component,
			s.from[at] + ", which runs it in its own process and is the program that lines name",
		}
	}
	for _, d := range s.dumps {
		if host, ok := hostOf(d.Dump); ok && slices.Contains(kubernetes, component) {
			return owner{
				component,
				host.program + ", which runs it in its own process, as " + host.by + " shows",
			}
		}
		if function, ok := built(d.Dump); ok {
			return owner{component, "a function as Kubernetes' own builds have it, " + function}
		}
	}
	if another := s.imageOfAnother(); another != "" {
		return owner{by: "the image that the text names is another program's, " + another}
	}
	name := regexp.MustCompile(
		`(?:^|[^a-z0-9])` + regexp.QuoteMeta(component) + `(?:[^a-z0-9]+([a-z]+)|[^a-z0-9]|$)`,
	)
	for _, part := range s.segments {
		if m := name.FindStringSubmatch(part); m != nil && !slices.Contains(companions, m[1]) {
			return owner{component, "the name of " + s.path}
		}
	}
	for _, c := range s.commands {
		if m := name.FindStringSubmatch(c); m != nil && !slices.Contains(companions, m[1]) {
			return owner{component, "the command above it, " + c}
		}
	}
	for _, v := range s.versions {
		if parsed, err := semver.Parse(strings.TrimPrefix(v.version, "v")); err == nil && v.by == "" && parsed.Major == 1 &&
			parsed.Minor >= 5 {
			return owner{
				component,
				"the line in which it says its version, " + v.version + ", as Kubernetes' programs do",
			}
		}
	}
	return owner{}
}

// companions are words that, after a component's name, make it the name of another program.
var companions = []string{"operator", "proxy", "exporter", "checker", "monitor", "syncer", "cert", "certs", "extender", "controller"}

// announcement is a version that a line announces, and the name of the program that has it; "" if the line names none.
type announcement struct {
	version, by string
	unsure      string // why it may not be the version of the evidence beside it, "" if it is
	start       bool   // a process has logged it at its start, which says nothing of the processes of other files
}

// programs are the words with which components announce their version at their start, and the components that use them.
var programs = []struct{ words, component string }{
	{"starting kubernetes scheduler", "kube-scheduler"}, {"kubelet version", "kubelet"}, {"starting kubelet", "kubelet"},
}

// announce records a version that a line of a log announces. from is the program that is known to write the line, and
// unsure why that may not be the version of what is beside it.
func (s *source) announce(version, text, from, unsure string) {
	text = strings.ToLower(text)
	for _, p := range programs {
		if strings.Contains(text, p.words) {
			from = p.component
		}
	}
	same := func(v announcement) bool { return v.version == version && v.by == from }
	if !slices.ContainsFunc(s.versions, same) {
		s.versions = append(s.versions, announcement{version, from, unsure, text != ""})
	}
}

// announcementsOf returns the versions that a source announces for a component, or without naming a program.
func (s *source) announcementsOf(component string) []announcement {
	return slices.DeleteFunc(slices.Clone(s.versions), func(v announcement) bool { return v.by != "" && v.by != component })
}

// versionsOf returns the versions that a source announces for a component. If it announces none, it returns those that
// anything in it states of the component. What is unsure counts only if nothing else is there.
func (s *source) versionsOf(component string) []announcement {
	unsure := func(v announcement) bool { return v.unsure != "" }
	announced := s.announcementsOf(component)
	if !slices.ContainsFunc(announced, func(v announcement) bool { return !unsure(v) }) {
		stated := slices.DeleteFunc(
			slices.Clone(s.stated),
			func(v announcement) bool { return v.by != component },
		)
		announced = append(announced, stated...)
		if sure := slices.DeleteFunc(stated, unsure); len(sure) > 0 {
			return sure
		}
	}
	return announced
}

// describe says whose evidence it is, in a sentence about a component's incident.
func (o owner) describe(component string) string {
	switch o.program {
	case "":
		if o.by != "" {
			return o.by
		}
		return fmt.Sprintf("nothing shows that it is of %s", component)
	case component:
		return fmt.Sprintf("it is of %s, by %s", component, o.by)
	}
	return fmt.Sprintf("it is of %s, by %s, and not of %s", o.program, o.by, component)
}
