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

// written is one version of an object, without the object's content.
type written struct {
	at                   time.Time
	typ                  string // Type of the churn.Version
	resource             string
	namespace, name      string
	compared             bool // paths come from a comparison with the version before
	paths                []string
	class                string
	manager, subresource string
	terminating          bool // the object has a deletionTimestamp
}

// effective reports whether the version is a write that a watch showed.
func (w written) effective() bool {
	return w.typ == churn.Added || w.typ == churn.Modified || w.typ == churn.Deleted
}

// object returns the name of the object that was written, with the namespace if there is one.
func (w written) object() string { return strings.TrimPrefix(w.namespace+"/"+w.name, "/") }

// recorded holds the versions of all objects in one artifact.
type recorded struct {
	bundle.Artifact
	versions []written
	followed []string          // the resources whose objects were all listed, and followed from then on
	examples map[string]string // class -> what one write of that class changed, before and after
}

// maxExamples is how many classes of a record get an example, at most. A record in which every write has another class
// needs no more.
const maxExamples = 100

// recordsOf returns the records of objects that an arm has. doubt says which record can't be read, and why; "" if all
// can.
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
			whole, err := v.Open(a) // new versions alone can't be compared with the ones before
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

// example describes what a write changed, with the first five paths.
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

// brevity returns a value as text, and only its beginning if the value is long.
func brevity(value []byte) string {
	switch {
	case value == nil:
		return "nothing"
	case len(value) > 200:
		return fmt.Sprintf("%.200s… (%d bytes)", value, len(value))
	}
	return string(value)
}

// following returns the records in which a resource was followed.
func following(all []*recorded, resource string) []*recorded {
	return slices.DeleteFunc(slices.Clone(all),
		func(r *recorded) bool { return !slices.Contains(r.followed, resource) })
}

// followersOf returns the records of an arm in which a resource was followed. doubt says what is wrong with the arm's
// records, or that none of them followed the resource.
func followersOf(v bundle.View, arm, resource string) (of []*recorded, doubt string) {
	all, doubt := recordsOf(v, arm)
	if of = following(all, resource); len(of) == 0 {
		doubt = cmp.Or(doubt, fmt.Sprintf("nobody followed %s for %s", resource, arm))
	}
	return of, doubt
}

// uncovered says why no record covers a whole window; "" if one does. The record's coverage may fall short by slack at
// either end.
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

// bestOf returns the first record that covers a whole window, or else the first record.
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

// activity holds the writes to objects of a resource in a window.
type activity struct {
	all   []written            // in order of time
	by    map[string][]written // the same by object
	there int                  // how many objects existed when the window began, written or not
}

// writes returns a resource's activity in a window. With a name, only objects of that name count.
func writes(of []*recorded, resource, name string, w bundle.Window) activity {
	out, there := activity{by: map[string][]written{}}, map[string]bool{}
	for _, x := range bestOf(of, w, 0).versions { // with several records each write would count several times
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

// none reports whether nothing was written because there was no object to write.
func (a activity) none() bool { return len(a.all) == 0 && a.there == 0 }

// busiest returns the object that was written most often, and the writes to that object.
func (a activity) busiest() (object string, all []written) {
	for _, name := range slices.Sorted(maps.Keys(a.by)) {
		if len(a.by[name]) > len(all) {
			object, all = name, a.by[name]
		}
	}
	return object, all
}

// groups describes how many writes changed the same paths and came from the same manager, the largest number first.
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

// managers returns the names of those who wrote, each once.
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

// exampleOf returns what one write of the same class as the first of all changed; "" if no record has an example.
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
