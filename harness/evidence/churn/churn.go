// Package churn reads recorded writes to Kubernetes objects: every version that a watch showed, what each write
// changed, who wrote it and how often.
//
// A record is a text of JSON lines, each a Version. The changes of a write are a list of paths. An element of a list is
// named by its key if the elements have one: status.conditions[type=Monitored].lastUpdateTime. metadata.resourceVersion
// and the times and order of metadata.managedFields change with every write and don't count.
package churn

import (
	"encoding/json"
	"time"
)

// The types of a Version.
const (
	Added    = "ADDED"    // the watch showed a new object
	Modified = "MODIFIED" // the watch showed a write
	Deleted  = "DELETED"  // the watch showed a deletion; the object is as it was last
	Listed   = "LISTED"   // a list showed the object: it was written at some time before
	Synced   = "SYNCED"   // the whole resource was listed and is followed from here; objects not in the list are gone
	Lost     = "LOST"     // the watch broke for good: what was written from From to Time may be missing
)

// Version is one line of a record: an object as a write left it, or a mark, which has no object.
type Version struct {
	Time            time.Time `json:"time"`             // when it was seen
	Type            string    `json:"type"`             // one of the types above
	From            time.Time `json:"from,omitzero"`    // of Lost
	Reason          string    `json:"reason,omitempty"` // of Lost
	Resource        string    `json:"resource"`         // "bundledeployments.fleet.cattle.io", "pods"
	Namespace       string    `json:"namespace,omitempty"`
	Name            string    `json:"name,omitempty"`
	UID             string    `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"` // of the object, or of the list
	// Object is the whole object, with its managed fields. In a Version from Read or Updates it is valid until the
	// iteration goes on.
	Object json.RawMessage `json:"object,omitempty"`
}

// Change is one path that a write changed. Before is nil where there was nothing, After where there is nothing left.
type Change struct {
	Path          string
	Before, After json.RawMessage
}

// Update is a version together with the same object's version before it.
type Update struct {
	Version
	// Before is the object's version before; nil if none is known. It is valid until the next step.
	Before json.RawMessage
	// Paths are the changed paths, sorted. All updates with the same changes share the slice, so nobody may write to
	// it. An empty list for a Modified means that nothing changed except what doesn't count; for any other type it
	// means nothing.
	Paths []string
	// Class is Paths as one text, joined by ", ".
	Class string
	// Manager is the field manager whose entry changed or has the newest time; "" if the managed fields don't tell.
	// Subresource is that of the same entry: "status".
	Manager, Subresource string
}

// Effective reports whether the watch showed this update as a write: something was added, changed or removed. Each
// write has its own resourceVersion.
func (u *Update) Effective() bool {
	return u.Type == Added || u.Type == Modified || u.Type == Deleted
}
