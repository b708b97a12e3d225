package question

import (
	"fmt"
	"maps"
	"math"
	"time"
)

// number is a number in a finding's sentence that has a name.
type number struct {
	name  string
	shown any     // what the sentence shows
	value float64 // what programs get
}

// Format writes what the sentence shows, by the verb that stands there.
func (n number) Format(s fmt.State, verb rune) { fmt.Fprintf(s, fmt.FormatString(s, verb), n.shown) }

// N gives a number in a finding's sentence a name, by which programs find it in the finding's figures.
func N[T int | int64 | float64](name string, value T) any { return number{name, value, float64(value)} }

// Rounded gives a duration a name, under which programs find it in seconds. A sentence shows it rounded, by the verb
// %s.
func Rounded(name string, d, to time.Duration) any { return number{name, d.Round(to), d.Seconds()} }

// As gives a number a name, and says how a sentence shows it by the verb %s.
func As(name string, value float64, shown string) any { return number{name, shown, value} }

// Bytes gives a number of bytes a name. A sentence shows it in MiB, by the verb %s.
func Bytes(name string, n int64) any { return As(name, float64(n), Mebibytes(n)) }

// Say sets what was seen, formatted as by fmt.Sprintf, and keeps the numbers that have names.
func (q *Question) Say(format string, args ...any) {
	q.Seen, q.Figures = "", nil
	q.Add(format, args...)
}

// Add appends to what was seen, formatted as by fmt.Sprintf, and keeps the numbers that have names.
func (q *Question) Add(format string, args ...any) {
	q.Seen += fmt.Sprintf(format, args...)
	for _, a := range args {
		if n, ok := a.(number); ok {
			q.Keep(n.name, n.value)
		}
	}
}

// Keep adds a number to the finding's figures, in place of one of the same name. It drops what is no finite number,
// which JSON can't hold.
func (q *Question) Keep(name string, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	if q.Figures = maps.Clone(q.Figures); q.Figures == nil { // the same question about another window shares the map
		q.Figures = map[string]float64{}
	}
	q.Figures[name] = value
}
