package checktest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// Limited is a trial whose subject uses so much of the CPU from second 100 to 250, and whose limits are recorded.
func Limited(busy float64, limits func(s float64) bundle.CPULimits) func(*Trial) {
	return LooksOf(
		0.002,
		busy,
		func(one *bundle.IdentitySample, s float64) { one.Limits = new(limits(s)) },
	)
}

// OnHost adds a host of two cores on which so many tasks could run, and that left so many cores idle.
func OnHost(tasks int, idle float64, fill func(*Trial)) func(*Trial) {
	return func(tr *Trial) {
		fill(tr)
		st := tr.Stream(bundle.Host, bundle.Shared)
		for s := 0.0; s <= 400; s += 5 {
			tr.Must(
				st.JSON(bundle.HostSample{
					Time:        tr.At(s),
					Cores:       2,
					Running:     tasks,
					AllSeconds:  100 + 2*s,
					BusySeconds: 50 + (2-idle)*s,
				}),
			)
		}
	}
}

// Free is a process that nothing limits, on both cores.
func Free(float64) bundle.CPULimits { return bundle.CPULimits{Known: true, Cores: 2} }

// Quota is a process that may use half a core, and is throttled in a quarter of its periods between two seconds.
func Quota(from, to float64) func(s float64) bundle.CPULimits {
	return func(s float64) bundle.CPULimits {
		return bundle.CPULimits{
			Known:     true,
			Cores:     2,
			Quota:     0.5,
			Periods:   int64(10 * s),
			Throttled: int64(max(0, min(s, to)-from) * 10 / 4),
		}
	}
}

// Looks is a trial in which the subject's process uses idle CPUs, and busy ones from second 100 to 250; more may change
// a look.
func Looks(idle, busy float64, more func(*bundle.IdentitySample, float64)) func(*Trial) {
	return Among(3, LooksOf(idle, busy, more))
}

// Among is a trial on a host of two cores, where so many tasks could run.
func Among(tasks int, fill func(*Trial)) func(*Trial) {
	return func(tr *Trial) {
		fill(tr)
		st := tr.Stream(bundle.Host, bundle.Shared)
		for s := 0.0; s <= 400; s += 5 {
			tr.Must(st.JSON(bundle.HostSample{Time: tr.At(s), Cores: 2, Running: tasks}))
		}
	}
}

// LooksOf records a process that uses idle CPUs, and busy ones from second 100 to 250; more may change a look.
func LooksOf(idle, busy float64, more func(*bundle.IdentitySample, float64)) func(*Trial) {
	return func(tr *Trial) {
		tr.Phases()
		Outside(tr).Covers(0, 400)
		st := tr.Stream(bundle.Identity, Arm)
		used := 1.0
		for s := 0.0; s <= 400; s += 2 {
			one := bundle.IdentitySample{Time: tr.At(s), PID: 7, StartTicks: 70, CPUSeconds: used}
			if more != nil {
				more(&one, s)
			}
			if one.PID >= 0 {
				tr.Must(st.JSON(one))
			}
			if used += 2 * idle; s >= 100 && s < 250 {
				used += 2 * (busy - idle)
			}
		}
	}
}

// older is a bundle of a version that told no format.
type older struct{ bundle.View }

func (o older) World() bundle.World {
	w := o.View.World()
	w.Format = 0
	return w
}

// AsOlder asks a check of a bundle as an earlier version made it.
func AsOlder(t *testing.T, kind, spec string, fill func(*Trial)) check.Finding {
	t.Helper()
	tr := NewTrial(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
	fill(tr)
	c, err := kinds.Decode[check.Check](kinds.Check, kind, json.RawMessage(spec))
	tr.Must(err)
	return c.Eval(older{tr.W.View()}, check.Scope{Arm: Arm, Phase: check.Fault})
}
