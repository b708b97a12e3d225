package host

import (
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/internal/docker/dockertest"
)

const noCaps = "OCI runtime create failed: unable to apply caps: operation not permitted"

func TestMain(m *testing.M) { dockertest.Main(m) }

func TestPreflightAsksTheEngine(t *testing.T) {
	for name, test := range map[string]struct {
		state dockertest.State
		minor int
		check string
		want  Check
	}{
		"engine": {check: "engine",
			want: Check{Status: OK, Seen: "docker 20.10.24 on , storage overlay2, runtime runc"}},
		"daemon down": {state: dockertest.State{Down: true}, check: "engine",
			want: Check{Status: Fail, Seen: "the docker daemon doesn't answer: start it", Remedy: "systemctl start docker"}},
		"privileged": {check: checkPrivileged, want: Check{Status: OK, Seen: "one ran in "}},
		"bounded": {state: dockertest.State{Bounded: noCaps}, check: checkPrivileged,
			want: Check{Status: Fail, Seen: "the host's capabilities are bounded: running `docker start",
				Remedy: "relapse doctor --fix"}},
		"broken otherwise": {state: dockertest.State{Bounded: "no space left on device"}, check: checkPrivileged,
			want: Check{Status: Fail, Seen: "running `docker start", Remedy: "docker info"}},
		"cgroup v1":          {check: "cgroup version", want: Check{Status: OK, Seen: "v1: good up to Kubernetes 1.36"}},
		"cgroup v1 for 1.36": {check: "cgroup version", minor: 36, want: Check{Status: OK, Seen: "v1"}},
		"cgroup v1 for 1.37": {check: "cgroup version", minor: 37,
			want: Check{Status: Warn, Seen: "v1, and Kubernetes 1.37 is asked for",
				Remedy: "boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := dockertest.New(t, test.state)
			checks := Preflight(t.Context(), Options{KubernetesMinor: test.minor, NodeImage: "official",
				CacheDir: t.TempDir() + "/not/yet"})
			i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == test.check })
			if i < 0 {
				t.Fatalf("no check %q in %+v", test.check, checks)
			}
			got := checks[i]
			if got.Status != test.want.Status || !strings.HasPrefix(got.Seen, test.want.Seen) || got.Remedy != test.want.Remedy {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if s := dockertest.Read(dir); len(s.Objects) > 0 {
				t.Errorf("left behind: %v", s.Objects)
			}
		})
	}
}
