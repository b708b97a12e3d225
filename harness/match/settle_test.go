package match_test

import (
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// localhost matches an address on this host, by the words that choose its protocol.
var localhost = regexp.MustCompile(`(kubectl --server https://|curl -sf "?(?:https://)?)localhost:(\d+)`)

// A command that would settle an answer reaches the component: on its port, by its protocol and with credentials if it
// wants some. It needs nothing of the component's image, changes nothing and leaves nothing running.
func TestSettleCommandsReachTheirComponent(t *testing.T) {
	for _, s := range known(t) {
		if s.Spec.Match == nil {
			continue
		}
		row, isComponent := component.Of(s.Spec.Subject)
		for _, sign := range s.Spec.Match.Signs {
			wrong := func(format string, args ...any) {
				t.Helper()
				t.Errorf("%s, %s: "+format+": %s", append(append([]any{s.Metadata.Name, sign.Name}, args...), sign.Settle)...)
			}
			if out, err := exec.Command("bash", "-n", "-c", sign.Settle).CombinedOutput(); err != nil {
				wrong("bash can't read it: %s", out)
			}
			for _, word := range []string{"kubectl exec", " exec ", "wget", "delete", "patch", "edit", "apply", "rollout", "scale", "drain", "restart", "-ABRT", "-QUIT"} {
				if strings.Contains(sign.Settle, word) {
					wrong("it may need what an image doesn't have, or end the incident: %q", word)
				}
			}
			if strings.Contains(sign.Settle, "port-forward") != strings.Contains(sign.Settle, "; kill $!") {
				wrong("a port that is forwarded isn't closed")
			}
			for _, m := range localhost.FindAllStringSubmatch(sign.Settle, -1) {
				if !isComponent || row.Endpoint.URL == "" {
					continue
				}
				u, err := url.Parse(row.Endpoint.URL)
				if err != nil {
					t.Fatal(err)
				}
				if m[2] != u.Port() {
					wrong("it asks port %s, and %s listens on %s", m[2], row.Name, u.Port())
				}
				if byKubectl := strings.HasPrefix(m[1], "kubectl"); byKubectl != row.Endpoint.Authenticated {
					wrong("kubectl brings credentials, which %s wants: %t", row.Name, row.Endpoint.Authenticated)
				}
			}
			if n := strings.Count(sign.Settle, "localhost:"); n != len(localhost.FindAllString(sign.Settle, -1)) {
				wrong("%d addresses can't be checked", n)
			}
			if strings.Contains(sign.Settle, "https://HOST") || s.Metadata.Name == "listener-busy-wait" && strings.Contains(sign.Settle, "https://") {
				wrong("a TLS client ends the incident")
			}
		}
	}
}
