package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// FetchError says that a module couldn't be fetched, because the module proxy is off or doesn't answer.
type FetchError struct {
	Settings string // of the proxies, without credentials
	Err      error
}

// Error names the settings of the proxies.
func (e *FetchError) Error() string {
	return fmt.Sprintf("a module can't be fetched (%s): %v", e.Settings, e.Err)
}

// Unwrap returns what the go command said.
func (e *FetchError) Unwrap() error { return e.Err }

var (
	// unfetched matches what the go command says where it gets no answer to a request.
	unfetched = regexp.MustCompile(`module lookup disabled by GOPROXY|dial tcp|proxyconnect|Get "https?://`)
	userInfo  = regexp.MustCompile(`://[^/@\s]*@`)
)

// fetching returns a failure of the go command as a *FetchError if its output says that it got no answer.
func fetching(ctx context.Context, goTool, output string, err error) error {
	if !unfetched.MatchString(output) {
		return err
	}
	proxy := os.Getenv("GOPROXY")
	if said, failed := exec.CommandContext(ctx, goTool, "env", "GOPROXY").Output(); failed == nil { // go env -w sets it, too
		proxy = strings.TrimSpace(string(said))
	}
	https := os.Getenv("HTTPS_PROXY")
	if https == "" {
		https = os.Getenv("https_proxy")
	}
	if https == "" {
		https = "(not set)"
	}
	return &FetchError{
		Settings: userInfo.ReplaceAllString("GOPROXY="+proxy+", HTTPS_PROXY="+https, "://***@"),
		Err:      err,
	}
}
