package kind

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestLeaveOutDNS(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		want   string
	}{
		{"kubeadm made it", http.StatusOK, ""},
		{"kubeadm left it out", http.StatusNotFound, ""},
		{"refused", http.StatusForbidden, "leaving out CoreDNS: DELETE /apis/apps/v1/namespaces/kube-system/deployments/coredns: 403 Forbidden: no"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var asked string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.Method + " " + r.URL.Path
				http.Error(w, "no", tc.status)
			}))
			defer s.Close()
			c := &Cluster{rest: &rest.Config{Host: s.URL + "/"}, http: s.Client()}
			err := c.leaveOutDNS(t.Context())
			if got := strings.TrimSpace(errorText(err)); got != tc.want {
				t.Errorf("error %q, want %q", got, tc.want)
			}
			if want := "DELETE /apis/apps/v1/namespaces/kube-system/deployments/coredns"; asked != want {
				t.Errorf("asked for %s, want %s", asked, want)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
