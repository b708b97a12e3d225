package cluster

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// StatusError is an answer of a component's endpoint with another status than 200. Component.Get may wrap it. It proves
// that the component was there to answer.
type StatusError struct {
	Method string // "" is GET
	Path   string // "/readyz"
	Code   int    // 500
	Status string // "500 Internal Server Error"
	Text   string // the beginning of the body, without the space around it
}

// Error returns the request, the status and the beginning of the body.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: %s: %s", cmp.Or(e.Method, "GET"), e.Path, e.Status, e.Text)
}

// Body returns the body of an answer with status 200. Any other answer becomes a StatusError, which carries the body's
// beginning.
func Body(resp *http.Response, path string) (io.ReadCloser, error) {
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
	return nil, &StatusError{
		Method: resp.Request.Method,
		Path:   path,
		Code:   resp.StatusCode,
		Status: resp.Status,
		Text:   strings.TrimSpace(string(said)),
	}
}
