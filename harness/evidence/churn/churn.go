// Package churn reads recorded writes to Kubernetes objects: every version that a watch showed, what each write
// changed, who wrote it and how often.
//
// A record is JSON lines of Version. What a write changed is a list of paths. An element of a list is named by its
// key if the elements have one: status.conditions[type=Monitored].lastUpdateTime. metadata.resourceVersion and the
// times and order of metadata.managedFields change with every write and don't count.
package churn

import (
	"encoding/json"
	"time"
)

// The types of a Version.
const (
	Added    = "ADDED"    // the watch showed a new object
	Modified = "MODIFIED" // the watch showed a write
	Deleted  = "DELETED"  // the watch showed an object's end; the object is as it was last
	Listed   = "LISTED"   // a list showed the object: it was written at some time before
	Synced   = "SYNCED"   // all of the resource was listed and is followed from here; objects that were not listed anew are gone
	Lost     = "LOST"     // the watch broke for good: what was written from From to Time may be missing
)

// Version is one line of a record: an object as a write left it, or, without an object, a mark.
type Version struct {
	Time            time.Time `json:"time"`             // when it was seen
	Type            string    `json:"type"`             // see above
	From            time.Time `json:"from,omitzero"`    // of Lost
	Reason          string    `json:"reason,omitempty"` // of Lost
	Resource        string    `json:"resource"`         // "bundledeployments.fleet.cattle.io", "pods"
	Namespace       string    `json:"namespace,omitempty"`
	Name            string    `json:"name,omitempty"`
	UID             string    `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"` // of the object, or of the list
	// Object is whole, with its managed fields. From Read and Updates it is valid until the next step.
	Object json.RawMessage `json:"object,omitempty"`
}

// Change is one path that a write changed. Before is nil where there was nothing, After where there is nothing left.
type Change struct {
	Path          string
	Before, After json.RawMessage
}

// Update is a version beside the one before it.
type Update struct {
	Version
	// Before is the object's version before; nil if none is known. It is valid until the next step.
	Before json.RawMessage
	// Paths are what changed, sorted. They are shared by all updates that changed the same: they must not be written
	// to. None for a Modified means that nothing changed but what is not counted; for any other type it means
	// nothing.
	Paths []string
	// Class is the paths in one text, with ", " between them.
	Class string
	// Manager is the field manager whose entry changed, or has the newest time; "" where the managed fields don't
	// tell. Subresource is its own: "status".
	Manager, Subresource string
}

// Effective reports whether the watch showed this update as a write: something was added, changed or removed. Each
// write has its own resourceVersion.
func (u *Update) Effective() bool {
	return u.Type == Added || u.Type == Modified || u.Type == Deleted
}
