package seams

import (
	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// SchedulerExtender is the name of the seam of kube-scheduler's extender.
const SchedulerExtender = "scheduler-extender"

func init() {
	kinds.Register(kinds.Seam, kinds.Kind[seam.Seam]{
		Name: SchedulerExtender,
		Doc: `An extender of kube-scheduler, which kube-scheduler asks for each pod.

kube-scheduler reads where its extenders are when it starts. So an extender of the harness runs on the control plane from
the start, in every arm and every phase. By itself it changes nothing: its answer to filter has all nodes that it was
asked about, and its answer to prioritize gives each the score 0. The fault webhook, with extender, makes it answer by
rules. kube-scheduler gets a configuration file (--config), of kubescheduler.config.k8s.io/v1, that has the extender and
else nothing but the defaults. It waits at most 5s for an answer, and a pod isn't scheduled without one. Versions below
1.25 don't know that configuration.`,
		Example: "name: scheduler-extender\nkind: scheduler-extender\n",
		New:     func() seam.Seam { return &Extender{} },
	})
}

// Extender is the seam between kube-scheduler and an extender. It has no settings.
type Extender struct{}

// schedulerConfig is the name of kube-scheduler's configuration file.
const schedulerConfig = "relapse-extender.yaml"

// Fixture returns the extender's folder.
func (*Extender) Fixture() string { return "scheduler-extender" }

// Role returns ControlPlane, where kube-scheduler runs.
func (*Extender) Role() string { return cluster.ControlPlane }

// Files returns the extender's binary.
func (*Extender) Files(bin string) []cluster.File {
	return []cluster.File{{Path: control.ExtenderBinaryPath, Source: bin, Mode: 0o755}}
}

// Units returns the unit that runs the extender, and a drop-in that makes the kubelet, which starts kube-scheduler, wait
// for it.
func (*Extender) Units() []cluster.Unit {
	return []cluster.Unit{
		{Name: control.ExtenderUnitName, Content: control.ExtenderUnit},
		{Name: "kubelet.service", DropIn: control.ExtenderKubeletDropInName, Content: control.ExtenderKubeletDropIn},
	}
}

// Args returns the flag that gives kube-scheduler its configuration file.
func (*Extender) Args() map[string]map[string]string {
	return map[string]map[string]string{"kube-scheduler": {"config": schedulerConfig}}
}

// OwnFiles returns the configuration file that tells kube-scheduler where the extender is.
func (*Extender) OwnFiles() map[string]map[string]string {
	return map[string]map[string]string{"kube-scheduler": {
		schedulerConfig: control.SchedulerConfig(
			control.ExtenderKubeconfig,
			control.ExtenderListen,
		),
	}}
}
