package kind

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/internal/docker"
)

// A DaemonSet's pod is restarted by deleting that of its node, and no other.
func TestADaemonSetsPodIsRestarted(t *testing.T) {
	dir := t.TempDir()
	// The engine finds process 7 until the pod was deleted.
	script := "#!/bin/sh\nif [ -e " + dir + "/deleted ]; then echo 0; else printf '7\\n0\\n7 (kube-proxy) S 1 1 1 0 -1 0 0 0 0 0 5 6 0 0 20 0 1 0 99 0\\n2\\n'; fi\n"
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		status int
		want   string
	}{
		{"refused", http.StatusForbidden, "restarting kube-proxy on relapse-a-worker: DELETE /api/v1/namespaces/kube-system/pods?" +
			"fieldSelector=spec.nodeName%3Drelapse-a-worker&labelSelector=k8s-app%3Dkube-proxy: 403 Forbidden: no"},
		{"deleted", http.StatusOK, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tc.status == http.StatusOK {
					if err := os.WriteFile(filepath.Join(dir, "deleted"), nil, 0o644); err != nil {
						t.Error(err)
					}
				}
				http.Error(w, "no", tc.status)
			}))
			defer s.Close()
			p := &Provider{docker: &docker.Client{Path: filepath.Join(dir, "docker")}}
			c := &Cluster{p: p, rest: &rest.Config{Host: s.URL}, http: s.Client()}
			c.Machines = []*Node{{c: c, name: "relapse-a-worker", role: cluster.Worker}}
			all := c.Components("kube-proxy")
			if len(all) != 1 {
				t.Fatalf("there are %d, want one on each node", len(all))
			}
			if all[0].Abilities().Limit != nil {
				t.Error("a DaemonSet's memory can't be limited for one node")
			}
			err := all[0].Abilities().Restart(t.Context())
			if got := strings.TrimSpace(errorText(err)); got != tc.want {
				t.Errorf("error %q, want %q", got, tc.want)
			}
		})
	}
}
