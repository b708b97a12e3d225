package fault_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func TestProcessPauseValidate(t *testing.T) {
	for spec, want := range map[string]string{
		`{"component":"kubelet","atMost":"10m"}`: "",
		`{"component":"etcd"}`:                   "",
		`{"component":"etc"}`: `component is "etc" (want one of cloud-controller-manager, etcd, kube-apiserver, ` +
			"kube-controller-manager, kube-proxy, kube-scheduler, kubelet, relapse-lbaas)",
		`{"component":"etcd","atMost":"0s"}`:  "atMost is 0s (want above 0)",
		`{"component":"etcd","atMost":"70s"}`: "atMost is 1m10s (want below 1m10s, or the liveness probe of etcd restarts it)",
	} {
		f, err := kinds.Decode[fault.Fault](kinds.Fault, "processPause", []byte(spec))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := f.(*fault.ProcessPause).Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}
