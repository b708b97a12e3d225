package bundle

import "time"

// EtcdAnswer is what etcd said to one request of a load that speaks to it as a client.
type EtcdAnswer struct {
	Load  string    `json:"load"`  // the load's name in the scenario
	Round int       `json:"round"` // from 1
	Step  string    `json:"step"`  // the step's name within the round
	Verb  string    `json:"verb"`  // put, delete, compact, watch, open, cancel or close
	Key   string    `json:"key,omitempty"`
	Time  time.Time `json:"time"`
	Done  time.Time `json:"done"`
	Code  int       `json:"code"` // as in Call
	Error string    `json:"error,omitempty"`
	// LoadEnded is as in Call.
	LoadEnded bool `json:"loadEnded,omitempty"`

	// Revision is the one that a change made, or that was compacted at.
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
}

// EtcdEvent is one change that a watch showed.
type EtcdEvent struct {
	Type     string `json:"type"` // PUT or DELETE
	Key      string `json:"key"`
	Revision int64  `json:"revision"` // of the change
}
