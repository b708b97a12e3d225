package bundle

import "time"

// Call is one request of a load. Code 0 means that there was no answer, and Error says why.
type Call struct {
	Load  string    `json:"load"`  // the load's name in the scenario
	Round int       `json:"round"` // from 1
	Time  time.Time `json:"time"`
	Done  time.Time `json:"done"`
	Verb  string    `json:"verb"` // the API server's word, such as DELETECOLLECTION, or the HTTP method
	Path  string    `json:"path"`
	Code  int       `json:"code"`
	Error string    `json:"error,omitempty"`
	// Reason is that of the Status with which the API server refused the request, such as AlreadyExists. It is "" for
	// any other answer, and in records of earlier versions.
	Reason string `json:"reason,omitempty"`
	// GaveUp says that the load ended the call, because the time of the call or of the load was up. The answer may have
	// begun by then, as that to a watch that is held open: then Code is known.
	GaveUp bool `json:"gaveUp,omitempty"`
	// LoadEnded says that the time of the load was up, so that what would have become of the call isn't known. It is
	// false in records of earlier versions.
	LoadEnded bool `json:"loadEnded,omitempty"`
}

// ByNamespaceController is the Way of a load that deletes namespaces. The namespace controller deletes their contents,
// so the answers to the load's own calls tell nothing about those.
const ByNamespaceController = "namespaceController"

// Load sums up what a load did. Objects counts the objects that the load created beforehand. Their names end in their
// number, from 0, in the order of a list.
type Load struct {
	Name    string         `json:"name"`
	Way     string         `json:"way"`     // how the load worked: "calls", ByNamespaceController, or other words
	Objects int            `json:"objects"` // in each namespace; 0 if the load creates none beforehand
	Bytes   int64          `json:"bytes"`   // of each object's data, or of each request's body
	Rounds  []LoadRound    `json:"rounds"`
	Codes   map[string]int `json:"codes"` // response code -> calls, "none" for no answer
	// Planned is how many calls the load was to make. It is 0 in records of earlier versions. A load that ended early
	// made fewer.
	Planned int `json:"planned,omitempty"`
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
	Wanted float64   `json:"wanted"` // the rate asked for, in requests a second; 0 means all at once

	// Codes counts the round's answers: response code -> calls, "none" for no answer. It is nil if they were not
	// counted, by an earlier version or for a load whose answers claim nothing.
	Codes map[string]int `json:"codes,omitempty"`

	// Cut says what became of the calls that were in flight when the round began; nil if that isn't known.
	Cut *CutCalls `json:"cut,omitempty"`
}

// CutCalls are the calls that were in flight when a round began, as the load saw them.
type CutCalls struct {
	Open     int  `json:"open"`           // calls without an answer when the round began
	Deleting int  `json:"deleting"`       // open calls with a worker in a delete, as the API server's goroutines show
	Failed   int  `json:"failed"`         // open calls that the API server ended later, with a failure or no answer
	Left     *int `json:"left,omitempty"` // objects left once their number stood still; nil if that isn't known

	// Succeeded counts the open calls that the API server answered with success, however many objects were left. It is
	// 0 in records of earlier versions, which did not count them.
	Succeeded int `json:"succeeded,omitempty"`
}

// Success reports whether a response code claims that the request was carried out.
func Success(code int) bool { return code >= 200 && code < 300 }

// Ended returns how many of the open calls the API server ended, with success or not.
func (c CutCalls) Ended() int { return c.Failed + c.Succeeded }

// AtLeast returns how many of the calls that were deleting when the round began the API server must have ended later,
// at least.
func (c CutCalls) AtLeast() int { return max(0, c.Deleting+c.Ended()-c.Open) }

// The ways in which a probe ends. Only the first two say anything about the subject.
const (
	ProbeDone    = "done"     // every step was seen
	ProbeFailed  = "failed"   // the subject was asked, and didn't do a step in time
	ProbeCut     = "cut off"  // the phase ended before the probe did
	ProbeUnasked = "no probe" // the harness couldn't ask the subject, or couldn't look at the result
)

// ProbeRecord describes work that a load asked of the subject, and whether the subject did it. It is written at the
// end, however the probe ends.
type ProbeRecord struct {
	Name  string      `json:"name"` // the load's name
	Work  string      `json:"work"` // what was asked, in words
	Start time.Time   `json:"start"`
	End   time.Time   `json:"end"`
	Steps []ProbeStep `json:"steps"` // in order; the probe ended with the last one
	Ended string      `json:"ended"`
	Why   string      `json:"why,omitempty"` // "" if the probe is done
}

// ProbeStep is one step of a probe.
type ProbeStep struct {
	Try   int       `json:"try"` // from 1
	Step  string    `json:"step"`
	Asked time.Time `json:"asked"`
	Seen  time.Time `json:"seen,omitzero"` // zero if the step was never seen
	What  string    `json:"what,omitempty"`
}
