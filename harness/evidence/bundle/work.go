package bundle

import "time"

// Call is one request of a load. Code 0 is no answer, and Error says why.
type Call struct {
	Load  string    `json:"load"`  // the item's name
	Round int       `json:"round"` // from 1
	Time  time.Time `json:"time"`
	Done  time.Time `json:"done"`
	Verb  string    `json:"verb"`
	Path  string    `json:"path"`
	Code  int       `json:"code"`
	Error string    `json:"error,omitempty"`
	// GaveUp is a call that the load ended itself: its time was up, or the load's was.
	GaveUp bool `json:"gaveUp,omitempty"`
}

// ByNamespaceController is the Way of a load that deletes namespaces, whose contents the namespace controller deletes:
// the answers to the load's own calls say nothing of them.
const ByNamespaceController = "namespaceController"

// Load sums up what a load did. Objects are what it created beforehand; their names end in their number in the order
// of a list, from 0.
type Load struct {
	Name    string         `json:"name"`
	Way     string         `json:"way"`     // how the deletions were brought about
	Objects int            `json:"objects"` // in each namespace
	Bytes   int64          `json:"bytes"`   // of each object's data
	Rounds  []LoadRound    `json:"rounds"`
	Codes   map[string]int `json:"codes"` // response code -> calls, "none" for no answer
}

// LoadRound is one round of a load: from its first request to its last answer.
type LoadRound struct {
	Round  int       `json:"round"` // from 1
	Start  time.Time `json:"start"`
	Sent   time.Time `json:"sent"`  // when the last request was on its way
	Began  time.Time `json:"began"` // when the load was seen to take effect; zero if never
	End    time.Time `json:"end"`
	Calls  int       `json:"calls"`
	Rate   float64   `json:"rate"`   // requests a second while they were sent
	Wanted float64   `json:"wanted"` // requests a second asked for; 0 is all at once

	// Codes are the answers of the round: response code -> calls, "none" for no answer. Nil where an earlier version,
	// or a load whose answers claim nothing, did not count them.
	Codes map[string]int `json:"codes,omitempty"`

	// Cut is what became of the calls that were in flight when the round began; nil if nobody could tell.
	Cut *CutCalls `json:"cut,omitempty"`
}

// CutCalls are the calls that were in flight when a round began, as the load saw them.
type CutCalls struct {
	Open     int  `json:"open"`           // calls without an answer then
	Deleting int  `json:"deleting"`       // those of them with a worker in a delete, by the API server's goroutines
	Failed   int  `json:"failed"`         // those of them that the API server ended later on with a failure, or without an answer
	Left     *int `json:"left,omitempty"` // objects that were still there afterwards, and stood still; nil if that isn't known

	// Succeeded are those of them that the API server answered with success, whatever was left. Earlier versions did
	// not count them: 0.
	Succeeded int `json:"succeeded,omitempty"`
}

// Success reports whether a response code claims that what was asked for is done.
func Success(code int) bool { return code >= 200 && code < 300 }

// Ended is how many of the calls the API server ended, in whichever way.
func (c CutCalls) Ended() int { return c.Failed + c.Succeeded }

// AtLeast is how many of the calls that deleted when the round began the API server must have ended later.
func (c CutCalls) AtLeast() int { return max(0, c.Deleting+c.Ended()-c.Open) }

// The ways in which a probe ends. Only the first two say anything about the subject.
const (
	ProbeDone    = "done"     // every step was seen
	ProbeFailed  = "failed"   // the subject was asked, and didn't do a step in its time
	ProbeCut     = "cut off"  // the phase ended before it did
	ProbeUnasked = "no probe" // the harness couldn't ask, or couldn't look
)

// ProbeRecord is work that a load asked of the subject, to see whether it does it. It is written at the end, however
// the probe ends.
type ProbeRecord struct {
	Name  string      `json:"name"` // the load's name
	Work  string      `json:"work"` // what was asked, in words
	Start time.Time   `json:"start"`
	End   time.Time   `json:"end"`
	Steps []ProbeStep `json:"steps"` // in their order; the last is the one that it ended with
	Ended string      `json:"ended"`
	Why   string      `json:"why,omitempty"` // unless it is done
}

// ProbeStep is one step of a probe.
type ProbeStep struct {
	Try   int       `json:"try"` // from 1
	Step  string    `json:"step"`
	Asked time.Time `json:"asked"`
	Seen  time.Time `json:"seen,omitzero"` // zero if it never was
	What  string    `json:"what,omitempty"`
}
