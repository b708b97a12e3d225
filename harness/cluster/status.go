package cluster

import (
	"cmp"
	"fmt"
)

// StatusError is an answer of a component's endpoint other than 200. Component.Get may wrap it: it tells that the component was there and
// what it said.
type StatusError struct {
	Method string // "" is GET
	Path   string // "/readyz"
	Code   int    // 500
	Status string // "500 Internal Server Error"
	Text   string // how the body begins, without the space around it
}

// Error names all of it.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: %s: %s", cmp.Or(e.Method, "GET"), e.Path, e.Status, e.Text)
}
