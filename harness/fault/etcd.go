package fault

import (
	"fmt"
	"strconv"
	"time"

	"github.com/chaos-mesh/chaos-mesh/api/v1alpha1"

	"github.com/kube-relapse/relapse/fixtures/control"
)

// EtcdLatency makes etcd slow to answer, in the words of Chaos Mesh's delay. Latency and jitter are durations with their unit; correlation and
// reorder are there to be refused by Validate with the reason.
type EtcdLatency struct {
	v1alpha1.DelaySpec
}

// Validate refuses a delay that the proxy can't make, before anything is built for it.
func (f *EtcdLatency) Validate() error {
	if f.Reorder != nil {
		return fmt.Errorf("reorder is set: the proxy stands in a stream of bytes, which has an order (leave it out)")
	}
	if f.Correlation != "" {
		if v, err := strconv.ParseFloat(f.Correlation, 64); err != nil || v != 0 {
			return fmt.Errorf("correlation is %q: the proxy draws each delay by itself and knows none (leave it out)", f.Correlation)
		}
	}
	d, err := f.delay()
	if err != nil {
		return err
	}
	latency, jitter := time.Duration(d.Latency), time.Duration(d.Jitter)
	switch {
	case latency < 0 || latency%time.Millisecond != 0:
		return fmt.Errorf("latency is %s (want whole milliseconds, 0 or more)", latency)
	case jitter < 0 || jitter%time.Millisecond != 0 || jitter > latency:
		return fmt.Errorf("jitter is %s (want whole milliseconds, at most the latency of %s)", jitter, latency)
	case latency+jitter > control.MaxEtcdLatency:
		return fmt.Errorf("latency and jitter are %s together (want at most %s)", latency+jitter, control.MaxEtcdLatency)
	}
	return nil
}

// delay reads the durations. A jitter left out is 0.
func (f *EtcdLatency) delay() (out control.EtcdLatency, err error) {
	for _, one := range []struct {
		name, text string
		into       *control.Duration
	}{{"latency", f.Latency, &out.Latency}, {"jitter", f.Jitter, &out.Jitter}} {
		if one.text == "" && one.name == "jitter" {
			continue
		}
		d, err := time.ParseDuration(one.text)
		if err != nil {
			return out, fmt.Errorf("%s is %q (want a duration with its unit: 250ms, 1.5s)", one.name, one.text)
		}
		*one.into = control.Duration(d)
	}
	return out, nil
}
