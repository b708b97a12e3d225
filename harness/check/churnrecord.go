package check

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

// written is one version of an object, in short.
type written struct {
	at                   time.Time
	typ                  string // as in churn.Version
	resource             string
	namespace, name      string
	compared             bool // with the version before it
	paths                []string
	class                string
	manager, subresource string
	terminating          bool // it has a deletionTimestamp
}

// effective says that it is a write that a watch showed.
func (w written) effective() bool {
	return w.typ == churn.Added || w.typ == churn.Modified || w.typ == churn.Deleted
}

// object names what was written.
func (w written) object() string { return strings.TrimPrefix(w.namespace+"/"+w.name, "/") }

// recorded is what an artifact says of all objects in it.
type recorded struct {
	bundle.Artifact
	versions []written
	followed []string          // the resources that were listed whole
	examples map[string]string // class -> what one write of it changed, before and after
}

// maxExamples bounds how many classes are shown by an example: a record in which every write is a class of its own
// needs no more.
const maxExamples = 100

// recordsOf are the records of objects that an arm has. doubt says which of them can't be read, and why.
func recordsOf(v bundle.View, arm string) (out []*recorded, doubt string) {
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Objects, Arm: arm}) {
		if a.Missing || a.Error != "" {
			doubt = fmt.Sprintf("%s of %s: %s", bundle.Objects, arm, captureError(a))
			continue
		}
		one, err := remember(v, a, "written", func(_ recorded, r io.Reader) (recorded, error) {
			if strings.HasSuffix(a.Path, bundle.Packed) {
				return readRecord(r)
			}
			whole, err := v.Open(a) // what is new can't be compared without what was there before
			if err != nil {
				return recorded{}, err
			}
			defer whole.Close()
			return readRecord(whole)
		})
		if err != nil {
			doubt = err.Error()
			continue
		}
		one.Artifact = a
		out = append(out, &one)
	}
	return out, doubt
}

func readRecord(r io.Reader) (recorded, error) {
	out := recorded{examples: map[string]string{}}
	for u, err := range churn.Updates(r) {
		switch {
		case err != nil:
			return out, err
		case u.Type == churn.Synced:
			out.followed = union(out.followed, u.Resource)
			continue
		case u.Type == churn.Lost:
			continue
		}
		out.versions = append(out.versions, written{
			at: u.Time, typ: u.Type, resource: u.Resource, namespace: u.Namespace, name: u.Name,
			compared: u.Before != nil,
			paths:    u.Paths, class: u.Class, manager: u.Manager, subresource: u.Subresource,
			terminating: bytes.Contains(u.Object, []byte(`"deletionTimestamp":"`)) && deleting(u.Object),
		})
		if _, have := out.examples[u.Class]; !have && u.Before != nil && len(u.Paths) > 0 &&
			len(out.examples) < maxExamples {
			out.examples[u.Class] = example(u)
		}
	}
	slices.SortStableFunc(out.versions, func(a, b written) int { return a.at.Compare(b.at) })
	return out, nil
}

var deletionTimestamp, _ = churn.ParsePath("metadata.deletionTimestamp")

func deleting(object []byte) bool {
	at, err := deletionTimestamp.Of(object)
	return err == nil && at != ""
}

// example shows what a write changed.
func example(u churn.Update) string {
	all, err := churn.Changes(u.Before, u.Object)
	if err != nil {
		return err.Error()
	}
	out := fmt.Sprintf("%s %s at %s, version %s, by %s", u.Resource, strings.TrimPrefix(u.Namespace+"/"+u.Name, "/"),
		clock(u.Time), u.ResourceVersion,
		cmp.Or(u.Manager, "nobody that is known"))
	for i, c := range all {
		if i == 5 {
			return out + fmt.Sprintf("\n… and %d more paths", len(all)-i)
		}
		out += fmt.Sprintf("\n%s: %s -> %s", c.Path, brevity(c.Before), brevity(c.After))
	}
	return out
}

// brevity is a shortened value.
func brevity(value []byte) string {
	switch {
	case value == nil:
		return "nothing"
	case len(value) > 200:
		return fmt.Sprintf("%.200s… (%d bytes)", value, len(value))
	}
	return string(value)
}

// following keeps the records in which a resource was followed.
func following(all []*recorded, resource string) []*recorded {
	return slices.DeleteFunc(slices.Clone(all),
		func(r *recorded) bool { return !slices.Contains(r.followed, resource) })
}

// followersOf are the records of an arm in which a resource was followed. doubt says what is wrong with the arm's
// records, or that there are none of it.
func followersOf(v bundle.View, arm, resource string) (of []*recorded, doubt string) {
	all, doubt := recordsOf(v, arm)
	if of = following(all, resource); len(of) == 0 {
		doubt = cmp.Or(doubt, fmt.Sprintf("nobody followed %s for %s", resource, arm))
	}
	return of, doubt
}

// uncovered says why none of the records speaks for all of a window, "" if one does. Its coverage may fall short by
// slack at either end.
func uncovered(all []*recorded, w bundle.Window, slack time.Duration) string {
	var arts []bundle.Artifact
	for _, r := range all {
		if r.Coverage.Covers(w.Start, w.End, slack) {
			return ""
		}
		arts = append(arts, r.Artifact)
	}
	return fmt.Sprintf("the record of objects does not cover %s", span(w)) + describeGaps(arts, w)
}

// bestOf is the first record that speaks for all of a window, or the first of all.
func bestOf(all []*recorded, w bundle.Window, slack time.Duration) *recorded {
	return all[max(0, slices.IndexFunc(all,
		func(r *recorded) bool { return r.Coverage.Covers(w.Start, w.End, slack) }))]
}

func pathsOf(all []*recorded) (out []string) {
	for _, r := range all {
		out = union(out, r.Path)
	}
	return out
}

// activity is what was written of a resource in a window.
type activity struct {
	all   []written            // in order of time
	by    map[string][]written // the same by object
	there int                  // how many objects were there when the window began, written or not
}

// writes reads the activity in a window. With a name, only objects of that name count.
func writes(of []*recorded, resource, name string, w bundle.Window) activity {
	out, there := activity{by: map[string][]written{}}, map[string]bool{}
	for _, x := range bestOf(of, w, 0).versions { // in several records each write would count several times
		switch object := x.object(); {
		case x.resource != resource || name != "" && x.name != name || !x.at.Before(w.End):
		case x.at.Before(w.Start) && x.typ == churn.Deleted:
			delete(there, object)
		case x.at.Before(w.Start):
			there[object] = true
		case x.effective():
			out.all, out.by[object] = append(out.all, x), append(out.by[object], x)
		}
	}
	out.there = len(there)
	return out
}

// none says that nothing was written because there was nothing to write.
func (a activity) none() bool { return len(a.all) == 0 && a.there == 0 }

// busiest is the object that was written most, and what was written to it.
func (a activity) busiest() (object string, all []written) {
	for _, name := range slices.Sorted(maps.Keys(a.by)) {
		if len(a.by[name]) > len(all) {
			object, all = name, a.by[name]
		}
	}
	return object, all
}

// groups are writes by what they changed and by whom, the most first.
func groups(all []written) []string {
	count := map[string]int{}
	for _, x := range all {
		what := "changed " + cmp.Or(x.class, "nothing that is visible")
		if !x.compared || x.typ != churn.Modified {
			what = "are " + x.typ
		}
		count[fmt.Sprintf("%s, by %s", what, cmp.Or(x.manager, "nobody that is known"))]++
	}
	keys := slices.SortedFunc(maps.Keys(count),
		func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	var out []string
	for _, k := range keys {
		out = append(out, fmt.Sprintf("%d writes %s", count[k], k))
	}
	return out
}

// managers are those who wrote, each once.
func managers(all []written) string {
	var out []string
	for _, x := range all {
		who := cmp.Or(x.manager, "nobody that is known")
		if x.subresource != "" {
			who += " (" + x.subresource + ")"
		}
		out = union(out, who)
	}
	return strings.Join(out, ", ")
}

// exampleOf is what one write like the first of them changed.
func exampleOf(of []*recorded, all []written) string {
	if len(all) == 0 {
		return ""
	}
	for _, r := range of {
		if e := r.examples[all[0].class]; e != "" {
			return e
		}
	}
	return ""
}
