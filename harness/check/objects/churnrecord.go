package objects

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

// Written is one version of an object, without the object's content.
type Written struct {
	At                   time.Time
	Type                 string // of the churn.Version; Synced if a new list lacks the object
	Resource             string
	Namespace, Name      string
	Compared             bool // Paths come from a comparison with the version before
	Paths                []string
	Class                string
	Manager, Subresource string
	terminating          bool // the object has a deletionTimestamp
}

// effective reports whether the version is a write that a watch showed.
func (w Written) effective() bool {
	return w.Type == churn.Added || w.Type == churn.Modified || w.Type == churn.Deleted
}

// gone reports whether the object is no more there.
func (w Written) gone() bool { return w.Type == churn.Deleted || w.Type == churn.Synced }

// object returns the name of the object that was written, with the namespace if there is one.
func (w Written) object() string { return strings.TrimPrefix(w.Namespace+"/"+w.Name, "/") }

// Recorded holds the versions of all objects in one artifact.
type Recorded struct {
	bundle.Artifact
	versions []Written
	followed []string          // the resources whose objects were all listed, and followed from then on
	examples map[string]string // class -> what one write of that class changed, before and after
}

// maxExamples is how many classes of a record get an example, at most. A record in which every write has another class
// needs no more.
const maxExamples = 100

// recordsOf returns the records of objects that an arm has. doubt says which record can't be read, and why; nil if all
// can.
func recordsOf(v bundle.View, arm string) (out []*Recorded, doubt error) {
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Objects, Arm: arm}) {
		if a.Missing || a.Error != "" {
			doubt = fmt.Errorf("%s of %s: %w", bundle.Objects, arm, question.CaptureError(a))
			continue
		}
		one, err := question.Remember(v, a, "written", func(_ Recorded, r io.Reader) (Recorded, error) {
			if strings.HasSuffix(a.Path, bundle.Packed) {
				return readRecord(r)
			}
			whole, err := v.Open(a) // new versions alone can't be compared with the ones before
			if err != nil {
				return Recorded{}, err
			}
			defer whole.Close()
			return readRecord(whole)
		})
		if err != nil {
			doubt = err
			continue
		}
		one.Artifact = a
		out = append(out, &one)
	}
	return out, doubt
}

func readRecord(r io.Reader) (Recorded, error) {
	out := Recorded{examples: map[string]string{}}
	left := presence{}
	for u, err := range churn.Updates(r) {
		switch {
		case err != nil:
			return out, err
		case u.Type == churn.Synced:
			out.followed = question.Union(out.followed, u.Resource)
			out.versions = append(out.versions, left.synced(u.Version)...)
			continue
		case u.Type == churn.Lost:
			left.lost(u.Resource)
			continue
		}
		left.saw(u.Version)
		out.versions = append(out.versions, Written{
			At:          u.Time,
			Type:        u.Type,
			Resource:    u.Resource,
			Namespace:   u.Namespace,
			Name:        u.Name,
			Compared:    u.Before != nil,
			Paths:       u.Paths,
			Class:       u.Class,
			Manager:     u.Manager,
			Subresource: u.Subresource,
			terminating: bytes.Contains(u.Object, []byte(`"deletionTimestamp":"`)) &&
				deleting(u.Object),
		})
		if _, have := out.examples[u.Class]; !have && u.Before != nil && len(u.Paths) > 0 &&
			len(out.examples) < maxExamples {
			out.examples[u.Class] = example(u)
		}
	}
	slices.SortStableFunc(out.versions, func(a, b Written) int { return a.At.Compare(b.At) })
	return out, nil
}

// presence has the objects that are there, by resource: whether each was in the list that is
// being read.
type presence map[string]map[[2]string]bool

func (p presence) saw(v churn.Version) {
	of := p[v.Resource]
	if of == nil {
		of = map[[2]string]bool{}
		p[v.Resource] = of
	}
	key := [2]string{v.Namespace, v.Name}
	switch v.Type {
	case churn.Deleted:
		delete(of, key)
	default:
		of[key] = of[key] || v.Type == churn.Listed
	}
}

// lost begins a new list: what an earlier one had may be gone.
func (p presence) lost(resource string) {
	for key := range p[resource] {
		p[resource][key] = false
	}
}

// synced ends a list. It returns a version for each object that the list has no more: nobody saw
// it go.
func (p presence) synced(v churn.Version) (gone []Written) {
	for key, listed := range p[v.Resource] {
		if v.Namespace != "" && key[0] != v.Namespace {
			continue
		}
		p[v.Resource][key] = false
		if !listed {
			delete(p[v.Resource], key)
			gone = append(gone, Written{At: v.Time, Type: churn.Synced, Resource: v.Resource,
				Namespace: key[0], Name: key[1]})
		}
	}
	slices.SortFunc(gone, func(a, b Written) int {
		return strings.Compare(a.object(), b.object())
	})
	return gone
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
	out := fmt.Sprintf(
		"%s %s at %s, version %s, by %s",
		u.Resource,
		strings.TrimPrefix(u.Namespace+"/"+u.Name, "/"),
		question.Clock(u.Time),
		u.ResourceVersion,
		cmp.Or(u.Manager, "nobody that is known"),
	)
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
func following(all []*Recorded, resource string) []*Recorded {
	return slices.DeleteFunc(slices.Clone(all),
		func(r *Recorded) bool { return !slices.Contains(r.followed, resource) })
}

// RecordsFollowing returns the records of an arm in which a resource was followed. doubt says what is wrong with the
// arm's records, or that none of them followed the resource.
func RecordsFollowing(v bundle.View, arm, resource string) (of []*Recorded, doubt error) {
	all, doubt := recordsOf(v, arm)
	if of = following(all, resource); len(of) == 0 {
		doubt = cmp.Or(doubt, nobodyFollowed(resource, arm))
	}
	return of, doubt
}

func nobodyFollowed(resource, arm string) error {
	return check.Doubt(check.NotRecorded, "nobody followed %s for %s", resource, arm)
}

// WhyUncovered says why no record covers a whole window; nil if one does. The record's coverage may fall short by slack
// at either end.
func WhyUncovered(all []*Recorded, w bundle.Window, slack time.Duration) error {
	var arts []bundle.Artifact
	for _, r := range all {
		if r.Coverage.Covers(w.Start, w.End, slack) {
			return nil
		}
		arts = append(arts, r.Artifact)
	}
	return check.Doubt(
		check.Gap,
		"the record of objects does not cover %s%s",
		question.Span(w),
		question.DescribeGaps(arts, w),
	)
}

// bestOf returns the first record that covers a whole window, or else the first record.
func bestOf(all []*Recorded, w bundle.Window, slack time.Duration) *Recorded {
	return all[max(0, slices.IndexFunc(all,
		func(r *Recorded) bool { return r.Coverage.Covers(w.Start, w.End, slack) }))]
}

// PathsOf returns the paths of the recordings, each once.
func PathsOf(all []*Recorded) (out []string) {
	for _, r := range all {
		out = question.Union(out, r.Path)
	}
	return out
}

// Activity holds the writes to objects of a resource in a window.
type Activity struct {
	All      []Written            // in order of time
	By       map[string][]Written // the same by object
	Existing int                  // how many objects existed when the window began, written or not
}

// ActivityOf returns a resource's activity in a window. With a name, only objects of that name count.
func ActivityOf(of []*Recorded, resource, name string, w bundle.Window) Activity {
	out, there := Activity{By: map[string][]Written{}}, map[string]bool{}
	for _, x := range bestOf(of, w, 0).versions { // with several records each write would count several times
		switch object := x.object(); {
		case x.Resource != resource || name != "" && x.Name != name || !x.At.Before(w.End):
		case x.At.Before(w.Start) && x.gone():
			delete(there, object)
		case x.At.Before(w.Start):
			there[object] = true
		case x.effective():
			out.All, out.By[object] = append(out.All, x), append(out.By[object], x)
		}
	}
	out.Existing = len(there)
	return out
}

// NoObject reports whether nothing was written because there was no object to write.
func (a Activity) NoObject() bool { return len(a.All) == 0 && a.Existing == 0 }

// ExampleOf returns what one write of the same class as the first of all changed; "" if no record has an example.
func ExampleOf(of []*Recorded, all []Written) string {
	if len(all) == 0 {
		return ""
	}
	for _, r := range of {
		if e := r.examples[all[0].Class]; e != "" {
			return e
		}
	}
	return ""
}
