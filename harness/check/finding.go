package check

import (
	"errors"
	"fmt"
	"time"
)

// Finding is a check's answer. Seen and Wanted tell people what was found and what was asked for; Code and Figures tell
// programs. Evidence lists the paths of the artifacts that decided, and Differs lists what nearly matched, and how it
// differed.
type Finding struct {
	Name     string    `json:"name"`
	Met      Truth     `json:"met"`
	Code     Code      `json:"code,omitempty"` // why Met is Unknown; "" if the evidence answers
	Seen     string    `json:"seen"`
	Wanted   string    `json:"wanted"`
	Differs  []string  `json:"differs"`
	Evidence []string  `json:"evidence"`
	Detail   string    `json:"detail,omitempty"` // the decisive stack or line, verbatim
	AnyOf    []Finding `json:"anyOf,omitempty"`
	// Figures are what was counted and measured, by name. Times are in seconds, and sizes in bytes.
	Figures map[string]float64 `json:"figures,omitempty"`
	// Tried says in numbers what the subject was exposed to, where the check measures that: an arm is only shown to
	// survive that much.
	Tried string `json:"tried,omitempty"`
	// Ended is when the subject's process ended, if the incident ended it or may have. A check that asks for that sets
	// it. If the check is True, the process's identity is judged up to that time. If the check is Unknown, so is whether
	// the subject was one process all along. If the check is False, more is missing than that end, which decides nothing.
	Ended time.Time `json:"ended,omitzero"`
}

// Code says in a word why the evidence doesn't answer a check.
type Code string

// The codes. Scripts that read verdict.json rely on them, so that none may be renamed.
const (
	BadCheck      Code = "bad-check"      // the check's own spec is wrong, or it needs a constant that isn't known
	NoPhase       Code = "no-phase"       // a phase that the check looks at never began, had no length or has not ended
	NotRecorded   Code = "not-recorded"   // nothing of the kind was recorded
	Unreadable    Code = "unreadable"     // a file is missing, damaged or cut short, or its capture failed
	Gap           Code = "gap"            // the source wasn't watched all the time, or lines were dropped
	TooFew        Code = "too-few"        // too few looks, samples or cases to answer by, or they ended too early
	TooShort      Code = "too-short"      // what was asked for lasted, but not for as long as it has to
	OtherProcess  Code = "other-process"  // the evidence may be of several processes
	Starved       Code = "starved"        // the host may have kept the subject from using more CPU time
	NotQuiet      Code = "not-quiet"      // the world around the subject never stood still for long enough
	NotConclusive Code = "not-conclusive" // the evidence is there, and fits more than one answer
)

// Codes lists all codes.
var Codes = []Code{BadCheck, NoPhase, NotRecorded, Unreadable, Gap, TooFew, TooShort, OtherProcess, Starved, NotQuiet,
	NotConclusive}

// doubt is an error with the code of what stands in the way of an answer.
type doubt struct {
	code Code
	error
}

func (d doubt) Unwrap() error { return d.error }

// Doubt returns an error that says what stands in the way of an answer. Its text is made as by fmt.Errorf.
func Doubt(code Code, format string, args ...any) error {
	return doubt{code, fmt.Errorf(format, args...)}
}

// CodeOf returns the code of a doubt, also of one that another error wraps. All other errors are of evidence that can't
// be read.
func CodeOf(err error) Code {
	if d, ok := errors.AsType[doubt](err); ok {
		return d.code
	}
	return Unreadable
}
