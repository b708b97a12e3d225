package judge

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Bug is what a run is about: the scenario's title, and where to read of the bug and its fix.
type Bug struct {
	Title string   `json:"title"`
	Links []string `json:"links,omitempty"`
}

// Others are the other scenarios that cover a component, where a run was planned.
type Others struct {
	Subject   string   `json:"subject"`
	Scenarios []string `json:"scenarios"`
}

// String returns "Other scenarios of kubelet: a, b".
func (o Others) String() string {
	return fmt.Sprintf("Other scenarios of %s: %s", o.Subject, strings.Join(o.Scenarios, ", "))
}

// String returns the title and one link: the first that is no issue, or else the first of all.
func (b Bug) String() string {
	out := strings.TrimRight(b.Title, ". ")
	if len(b.Links) == 0 {
		return out
	}
	i := slices.IndexFunc(
		b.Links,
		func(l string) bool { return !strings.Contains(l, "/issues/") },
	)
	return out + " (" + b.Links[max(i, 0)] + ")"
}

// Pair says what the arms of a pair are. About is the scenario's own sentence.
type Pair struct {
	Name  string  `json:"name"`
	About string  `json:"about,omitempty"`
	Arms  []Built `json:"arms"`
}

// Built says what an arm was built from. Changed and Does are about the mutations that the fixed arm doesn't have; in a
// fixed arm, about those that the vulnerable arm doesn't have.
type Built struct {
	Arm     string   `json:"arm"`
	Role    string   `json:"role"`
	Source  string   `json:"source"`            // "k8s.io/kubernetes v1.36.3"
	Version string   `json:"version,omitempty"` // "v1.36.3"; "" if it isn't known
	Changed []string `json:"changed,omitempty"` // "unselect at pkg/kubelet/pleg/generic.go:395"
	Does    []string `json:"does,omitempty"`    // what these mutations do to the subject, one sentence each
	Diff    string   `json:"diff,omitempty"`    // the file with the changes, relative to the run; "" if there is none

	Text string `json:"-"` // the beginning of that file
}

// String returns "k8s.io/kubernetes v1.36.3, with unselect at pkg/kubelet/pleg/generic.go:395".
func (b Built) String() string {
	if len(b.Changed) == 0 {
		return b.Source
	}
	return b.Source + ", with " + strings.Join(b.Changed, ", ")
}

// mutation is a kind of mutation, as far as a verdict tells of it: every mutate.Shape is one.
type mutation interface {
	Validate() error
	Label() string
}

// pairOf returns what the arms of a trial were built from. dir is the trial's, relative to the run.
func pairOf(b *bundle.Sealed, t plan.Trial, dir string) Pair {
	out := Pair{Name: t.Pair, About: strings.Join(strings.Fields(t.About), " "), Arms: []Built{}}
	for _, a := range t.Arms {
		one := Built{
			Arm:     a.Name,
			Role:    a.Role,
			Source:  sourceName(a.Source, changesOf(b.World(), a.Name)),
			Version: t.VersionOf(a),
		}
		if a.BuildOf != "" {
			one.Source = "the build of the arm " + a.BuildOf
			out.Arms = append(out.Arms, one)
			continue
		}
		other := counterpart(t, a)
		var own []string // kinds of mutations
		for _, m := range a.Source.Mutations {
			if other != nil && slices.ContainsFunc(other.Source.Mutations, func(o scenario.Mutation) bool {
				return o.Kind == m.Kind && string(o.Spec) == string(m.Spec)
			}) {
				continue
			}
			own = append(own, m.Kind)
			does, err := kinds.Decode[mutation](kinds.Mutation, m.Kind, m.Spec)
			if err == nil && does.Validate() == nil {
				one.Does = append(one.Does, does.Label())
			}
		}
		for _, c := range changesOf(b.World(), a.Name) {
			kind, _, _ := strings.Cut(c, " at ")
			if slices.Contains(own, kind) && (other == nil || !slices.Contains(changesOf(b.World(), other.Name), c)) {
				one.Changed = append(one.Changed, c)
			}
		}
		one.Diff, one.Text = diffOf(b, a.Name, dir)
		out.Arms = append(out.Arms, one)
	}
	return out
}

// counterpart returns the arm that another one is compared with: the fixed arm, and for the fixed arm the vulnerable
// one. It is nil if the trial lacks it.
func counterpart(t plan.Trial, a plan.Arm) *plan.Arm {
	role := scenario.Fixed
	if a.Role == scenario.Fixed {
		role = scenario.Vulnerable
	}
	i := slices.IndexFunc(t.Arms, func(o plan.Arm) bool { return o.Role == role })
	if i < 0 {
		return nil
	}
	return &t.Arms[i]
}

func changesOf(w bundle.World, arm string) []string {
	for _, a := range w.Arms {
		if a.Arm == arm {
			return a.Changes
		}
	}
	return nil
}

// mostDiff is how many bytes of an arm's diff a report has at most.
const mostDiff = 6 << 10

// diffOf returns the path of the diff that a bundle has for an arm, and its beginning. Both are "" if none can be
// read.
func diffOf(b *bundle.Sealed, arm, dir string) (file, text string) {
	for _, a := range b.Artifacts(bundle.Query{Kind: bundle.SourceDiff, Arm: arm}) {
		r, err := b.Open(a)
		if err != nil {
			continue
		}
		raw, err := io.ReadAll(io.LimitReader(r, mostDiff+1))
		r.Close()
		if err != nil {
			continue
		}
		more := ""
		if len(raw) > mostDiff {
			raw, more = raw[:bytes.LastIndexByte(raw[:mostDiff], '\n')+1], "…\n"
		}
		return path.Join(dir, a.Path), strings.ToValidUTF8(string(raw), "�") + more
	}
	return "", ""
}

// sourceName names what a source is: "k8s.io/kubernetes v1.36.3". changes are what its build says of it.
func sourceName(src scenario.Source, changes []string) string {
	var out string
	switch {
	case src.Patch != "":
		out = strings.TrimSpace(src.Module+" "+src.Version) + " with " + src.Change()
	case src.Commit != "":
		out = strings.TrimSpace(src.Module + " at " + src.Change())
	case src.Binary != "":
		out = "an executable, " + filepath.Base(src.Binary)
	case src.Image != "" || src.NodeImage != "":
		out = "an image, " + cmp.Or(src.Image, src.NodeImage)
	case src.Dir != "":
		out = "a source tree, " + filepath.Base(src.Dir) + commitOf(changes)
	case src.Fork != "":
		out = src.Fork
	case src.Fixture != "":
		out = "fixtures/" + src.Fixture
	default:
		out = strings.TrimSpace(src.Module + " " + src.Version)
	}
	if src.Release != nil {
		out += " as published"
	}
	if n := len(src.Before); n > 0 {
		out += fmt.Sprintf(
			", upgraded to in mid-trial from %s",
			cmp.Or(src.Before[n-1].Version, "another build"),
		)
	}
	return out
}

// treeState matches what a build says of the git repository that its tree is in.
var treeState = regexp.MustCompile(`^commit ([0-9a-f]{12})[0-9a-f]*(?:, nothing changed$| with uncommitted changes: .*SHA-256 of the diff ([0-9a-f]{12}))`)

// commitOf returns ", at commit 0123456789ab" for a tree of which the build says so, with the hash of what was changed
// since. It returns "" if the build says nothing of a commit.
func commitOf(changes []string) string {
	for _, c := range changes {
		if m := treeState.FindStringSubmatch(c); m != nil && m[2] != "" {
			return fmt.Sprintf(
				", at commit %s with uncommitted changes (SHA-256 of their diff %s)",
				m[1],
				m[2],
			)
		} else if m != nil {
			return ", at commit " + m[1]
		}
	}
	return ""
}

// sourcesOf returns for each arm the version of its source, or where the source came from.
func sourcesOf(t plan.Trial) map[string]string {
	out := map[string]string{}
	for _, c := range t.Arms {
		src := c.Source
		switch {
		case src.Binary != "":
			out[c.Name] = "an executable, " + filepath.Base(src.Binary)
		case src.Patch != "":
			out[c.Name] = src.Version + " with " + src.Change()
		case src.Commit != "":
			out[c.Name] = src.Change()
		case src.Dir != "":
			out[c.Name] = "a source tree, " + filepath.Base(src.Dir)
		case src.Version != "":
			out[c.Name] = src.Version
		default:
			out[c.Name] = src.Fixture
		}
		if n := len(src.Before); n > 0 {
			out[c.Name] += fmt.Sprintf(
				", upgraded to in mid-trial from %s",
				cmp.Or(src.Before[n-1].Version, "another build"),
			)
		}
	}
	return out
}
