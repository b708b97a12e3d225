package seams

import (
	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Seam, kinds.Kind[seam.Seam]{
		Name: "lbaas",
		Doc: `The requests of OpenStack's cloud-controller-manager to its cloud.

A load balancer API of the harness listens at the address at which cloud-controller-manager is told to find Keystone,
Neutron and Octavia. The API answers with load balancers that exist only in its memory, until a fault is armed in the
API. The API runs on the control plane from the start, in every arm and every phase, as the component relapse-lbaas.
By its configuration, cloud-controller-manager waits at most 10s for an answer.`,
		Example: "name: lbaas\nkind: lbaas\n",
		New:     func() seam.Seam { return &LBaaS{} },
	})
}

// LBaaS is the seam between cloud-controller-manager and its cloud. It has no settings.
type LBaaS struct{}

// Fixture returns the API's folder.
func (*LBaaS) Fixture() string { return "lbaas" }

// Role returns ControlPlane, where cloud-controller-manager runs.
func (*LBaaS) Role() string { return cluster.ControlPlane }

// Files returns the API's binary, and the configuration that tells cloud-controller-manager where the API is.
func (*LBaaS) Files(bin string) []cluster.File {
	return []cluster.File{{Path: control.LBaaSBinaryPath, Source: bin, Mode: 0o755},
		{Path: control.LBaaSCloudConfig, Content: []byte(control.CloudConfig(control.LBaaSListen)), Mode: 0o600}}
}

// Units returns the unit that runs the API, and a drop-in that makes the kubelet, which starts
// cloud-controller-manager, wait for it.
func (*LBaaS) Units() []cluster.Unit {
	return []cluster.Unit{
		{Name: control.LBaaSUnitName, Content: control.LBaaSUnit},
		{Name: "kubelet.service", DropIn: control.LBaaSKubeletDropInName, Content: control.LBaaSKubeletDropIn},
	}
}

// Args returns the flag that leads cloud-controller-manager to the API.
func (*LBaaS) Args() map[string]map[string]string {
	return map[string]map[string]string{
		"cloud-controller-manager": {"cloud-config": control.LBaaSCloudConfig},
	}
}
