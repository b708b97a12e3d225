package bundle

import (
	"net/http"
	"time"
)

// EtcdAnswer is what etcd said to one request of a load that speaks to it as a client.
type EtcdAnswer struct {
	Load  string    `json:"load"`  // the load's name in the scenario
	Round int       `json:"round"` // from 1
	Step  string    `json:"step"`  // the step's name within the round
	Verb  string    `json:"verb"`  // the step's field: put, delete, compact, watch, open, members, ...
	Key   string    `json:"key,omitempty"`
	Time  time.Time `json:"time"`
	Done  time.Time `json:"done"`
	Code  int       `json:"code"` // as in Call
	Error string    `json:"error,omitempty"`
	// LoadEnded is as in Call.
	LoadEnded bool `json:"loadEnded,omitempty"`

	// Revision is the one that a change made, that was compacted at, or up to which the watches of a stream have shown everything.
	Revision int64 `json:"revision,omitempty"`

	// From is the revision that a watch was to begin at, and Until that of the change that it was to show last.
	From  int64 `json:"from,omitempty"`
	Until int64 `json:"until,omitempty"`
	// Events is what a watch showed, in the order in which it came.
	Events []EtcdEvent `json:"events,omitempty"`
	// Canceled says that etcd ended the watch for Reason. Compacted is then the revision below which nothing is left to
	// be watched, if that was the reason.
	Canceled  bool   `json:"canceled,omitempty"`
	Compacted int64  `json:"compacted,omitempty"`
	Reason    string `json:"reason,omitempty"`

	// Member is what the answer says of the member that the step is about.
	Member *EtcdMember `json:"member,omitempty"`
}

// EtcdMember is what etcd says of a member of its cluster.
type EtcdMember struct {
	ID    string   `json:"id"` // in hexadecimal
	Is    string   `json:"is"`
	Peers []string `json:"peers,omitempty"` // the URLs at which others reach it
}

// What a member is.
const (
	EtcdLearner = "learner"
	EtcdVoter   = "voter"
	EtcdMissing = "missing" // it is not in the list
)

// EtcdEvent is one change that a watch showed.
type EtcdEvent struct {
	Type     string `json:"type"` // PUT or DELETE
	Key      string `json:"key"`
	Revision int64  `json:"revision"` // of the change
}

// Unanswered reports whether nobody knows what became of a request: it had no answer, or an error of the server's.
func (a EtcdAnswer) Unanswered() bool { return a.Code == 0 || a.Code >= http.StatusInternalServerError }
