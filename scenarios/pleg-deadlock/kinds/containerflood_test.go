package kinds_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
	own "github.com/kube-relapse/relapse/scenarios/pleg-deadlock/kinds"
)

// newFault makes a fault from a spec.
func newFault(t *testing.T, kind, spec string) fault.Fault {
	t.Helper()
	f, err := kinds.Decode[fault.Fault](kinds.Fault, kind, json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const floodSpec = `{"outlast":"threshold","overflow":"capacity"}`

// arms are the constants of arms, of a capacity and a threshold each.
func arms(each ...int64) []map[string]int64 {
	var out []map[string]int64
	for i := 0; i < len(each); i += 2 {
		out = append(out, map[string]int64{"capacity": each[i], "threshold": each[i+1]})
	}
	return out
}

func TestFloodSize(t *testing.T) {
	const threshold = int64(3 * time.Minute)
	for _, tc := range []struct {
		name      string
		spec      string
		constants []map[string]int64
		latency   string // of the fault beside it; "" if there is none
		want      int
		explained map[string]string
	}{
		{
			name: "of the true constants", spec: floodSpec, constants: arms(1000, threshold), latency: "40ms",
			want: 410 + 137, // ceil(180 / (0.04 * 11)) and ceil(1500 / 11)
			explained: map[string]string{
				"pods":    "547 = 410 to outlast threshold of 3m0s at 11 calls of 40ms a pod, and 137 for 1.5 times capacity of 1000 at 11 events a pod",
				"planned": "up to 6017 events, and one relist of at least 4m1s if it is given them all",
			},
		},
		{name: "of the largest constants of all arms", spec: floodSpec, constants: arms(40, threshold, 1000, int64(12*time.Second)), latency: "40ms", want: 547},
		{name: "with a slower runtime", spec: floodSpec, constants: arms(1000, threshold), latency: "80ms", want: 205 + 137},
		{name: "alone", spec: floodSpec, constants: arms(1000, threshold), want: 547},
		{name: "compressed", spec: floodSpec, constants: arms(40, int64(12*time.Second)), latency: "40ms", want: 28 + 6},
		{
			name: "with an executable that was given", spec: floodSpec, constants: append(arms(1000, threshold), nil), latency: "40ms",
			want: 1109 + 1091, // what is left of 2200, and ceil(12000 / 11)
			explained: map[string]string{
				"pods":    "2200 = 1109 to outlast threshold of 8m7s at 11 calls of 40ms a pod, and 1091 for 1.5 times capacity of 8000 at 11 events a pod",
				"planned": "up to 24200 events, and one relist of at least 16m8s if it is given them all",
				"unknown": "capacity is not known for every arm: the flood is for one of 8000, up to 8 times the largest that is known (1000); a channel that holds " +
					"more would look like a fix",
				"unknownThreshold": "threshold is not known for every arm: the flood is for one of 8m7s, up to 12 times the largest that is known (3m0s); a longer one is never exceeded",
			},
		},
		{
			name: "with a threshold that is not known", spec: floodSpec, constants: append(arms(1000, threshold), map[string]int64{"capacity": 1000}), latency: "40ms",
			want: 2063 + 137,
			explained: map[string]string{
				"pods":             "2200 = 2063 to outlast threshold of 15m7s at 11 calls of 40ms a pod, and 137 for 1.5 times capacity of 1000 at 11 events a pod",
				"planned":          "up to 24200 events, and one relist of at least 16m8s if it is given them all",
				"unknownThreshold": "threshold is not known for every arm: the flood is for one of 15m7s, up to 12 times the largest that is known (3m0s); a longer one is never exceeded",
			},
		},
		{
			name: "with a threshold that is not known, compressed", spec: floodSpec, latency: "40ms", want: 328 + 6,
			constants: append(arms(40, int64(12*time.Second)), map[string]int64{"capacity": 40}),
		},
		{
			name: "with more than a runtime can say", spec: floodSpec, constants: append(arms(4000, threshold), map[string]int64{"threshold": threshold}), latency: "40ms",
			want: 2200,
			explained: map[string]string{
				"pods":    "2200 = 410 to outlast threshold of 3m0s at 11 calls of 40ms a pod, and 1790 for 1.5 times capacity of 13126 at 11 events a pod",
				"planned": "up to 24200 events, and one relist of at least 16m8s if it is given them all",
				"limited": "4774 pods would be needed, and at most 2200 are possible: it is limited to those",
				"unknown": "capacity is not known for every arm: the flood is for one of 13126, up to 8 times the largest that is known (4000); a channel that holds " +
					"more would look like a fix",
			},
		},
		{name: "of a threshold that just fits", spec: floodSpec, constants: arms(1000, int64(15*time.Minute+15*time.Second)), latency: "40ms", want: 2200},
		{
			name: "given", spec: `{"pods":3,"outlast":"no","overflow":"no"}`, constants: arms(1, 1), want: 3,
			explained: map[string]string{"pods": "3, as given"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFault(t, "containerFlood", tc.spec).(*own.ContainerFlood)
			others := []fault.Fault{f}
			if tc.latency != "" {
				others = append(others, newFault(t, "criLatency", `{"latency":"`+tc.latency+`"}`))
			}
			planned := *f
			sized, explained, err := f.Compute(tc.constants, others)
			if err != nil {
				t.Fatal(err)
			}
			if got := sized.(*own.ContainerFlood).Pods; got != tc.want {
				t.Errorf("%d pods, want %d: %v", got, tc.want, explained)
			}
			if !reflect.DeepEqual(*f, planned) {
				t.Errorf("the plan's own flood became %+v, and was %+v", *f, planned)
			}
			if d := cmp.Diff(tc.explained, explained); tc.explained != nil && d != "" {
				t.Errorf("it says (-want +got):\n%s", d)
			}
		})
	}
}

// The size must do what it is computed for, whatever the numbers: one relist outlasts the threshold, and still has more
// events to send than the channel holds.
func TestFloodSizeSuffices(t *testing.T) {
	for _, capacity := range []int64{1, 40, 1000, 5000} {
		for _, threshold := range []time.Duration{time.Second, 12 * time.Second, 3 * time.Minute} {
			for _, latency := range []time.Duration{15 * time.Millisecond, 40 * time.Millisecond, time.Second} {
				f := newFault(t, "containerFlood", floodSpec).(*own.ContainerFlood)
				l := newFault(t, "criLatency", `{"latency":"`+latency.String()+`"}`)
				var tooLarge *fault.TooLargeError
				sized, _, err := f.Compute(arms(capacity, int64(threshold)), []fault.Fault{l, f})
				if errors.As(err, &tooLarge) && latency == time.Second {
					continue // at which one relist of what is needed would take over 20 minutes
				} else if err != nil {
					t.Fatal(err)
				}
				f = sized.(*own.ContainerFlood)
				for _, calls := range []int{f.ContainersPerPod + 1, f.ContainersPerPod + 3} { // of v1.36, and of older ones
					perPod := latency * time.Duration(calls)
					done := int(threshold / perPod)
					if threshold%perPod != 0 {
						done++ // pods inspected when the threshold passes, the one under way included
					}
					if left := (f.Pods - done) * (f.ContainersPerPod + 1); int64(left) <= capacity {
						t.Errorf("capacity %d, threshold %s, latency %s, %d calls a pod: of %d pods %d events are left, which the channel holds",
							capacity, threshold, latency, calls, f.Pods, left)
					}
				}
			}
		}
	}
}

func TestFloodSizeRefused(t *testing.T) {
	for _, tc := range []struct {
		constants []map[string]int64
		want      string
	}{
		{[]map[string]int64{{"capacity": 1000}}, `the constant "threshold", which the fault's size follows from, is not known for any arm`},
		{arms(1000, 0), `the constant "threshold" is 0`},
		{arms(1000, int64(20*time.Minute)), "one relist that outlasts the threshold of 20m0s and still overflows the capacity of 1000 would take up to 24m38s and report 28420 containers: " +
			"at most 20m0s and 22000 are possible"},
		{arms(1_000_000, int64(3*time.Minute)), "one relist that outlasts the threshold of 3m0s and still overflows the capacity of 1000000 would take up to 16h28m24s and report " +
			"1140470 containers: at most 20m0s and 22000 are possible"},
		{nil, `the constant "threshold", which the fault's size follows from, is not known for any arm`},
	} {
		f := newFault(t, "containerFlood", floodSpec).(*own.ContainerFlood)
		if _, _, err := f.Compute(tc.constants, nil); err == nil || err.Error() != tc.want {
			t.Errorf("of %v: %v, want %s", tc.constants, err, tc.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, tc := range []struct{ kind, spec, want string }{
		{"criLatency", `{"latency":"40ms"}`, ""},
		{"criLatency", `{"latency":"10s"}`, ""},
		{"criLatency", `{}`, "latency is 0s (want above 0, at most 10s)"},
		{"criLatency", `{"latency":"-1s"}`, "latency is -1s (want above 0, at most 10s)"},
		{"criLatency", `{"latency":"10001ms"}`, "latency is 10.001s (want above 0, at most 10s)"},
		{"containerFlood", floodSpec, ""},
		{"containerFlood", `{"pods":3}`, ""},
		{"containerFlood", `{}`, "neither pods nor both of outlast and overflow are given, so that the flood has no size"},
		{"containerFlood", `{"outlast":"threshold"}`, "neither pods nor both of outlast and overflow are given, so that the flood has no size"},
		{"containerFlood", `{"pods":-1}`, "pods is -1 (want 0 or more)"},
		{"containerFlood", `{"pods":3,"containersPerPod":0}`, "containersPerPod is 0 (want at least 1)"},
		{"containerFlood", `{"pods":3,"state":"asleep"}`, `state is "asleep" (want running or exited)`},
		{"containerFlood", `{"outlast":"a","overflow":"b","overflowFactor":0.5}`, "overflowFactor is 0.5 (want at least 1, or the channel would hold what is left)"},
		{"containerFlood", `{"outlast":"a","overflow":"b","unknownOutlastFactor":0.5}`, "unknownOutlastFactor is 0.5 (want at least 1"},
		{"containerFlood", `{"outlast":"a","overflow":"b","longest":"0s"}`, "longest is 0s (want above 0)"},
	} {
		f, err := kinds.Decode[fault.Fault](kinds.Fault, tc.kind, json.RawMessage(tc.spec))
		if err == nil {
			err = f.(interface{ Validate() error }).Validate()
		}
		if got := fmt.Sprint(err); tc.want == "" && err != nil || tc.want != "" && !strings.Contains(got, tc.want) {
			t.Errorf("%s %s: %s, want %q", tc.kind, tc.spec, got, tc.want)
		}
	}
}

func TestNeeds(t *testing.T) {
	cri := fault.Needs{Seams: []string{"cri"}, Exec: true}
	open := cri
	open.Constants = []string{"threshold", "capacity"}
	for _, tc := range []struct {
		kind, spec string
		want       fault.Needs
	}{
		{"criLatency", `{"latency":"40ms"}`, cri},
		{"containerFlood", floodSpec, open},
		{"containerFlood", `{"pods":3}`, cri},
	} {
		if d := cmp.Diff(tc.want, newFault(t, tc.kind, tc.spec).Needs()); d != "" {
			t.Errorf("%s %s needs (-want +got):\n%s", tc.kind, tc.spec, d)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tc := range []struct{ kind, spec, want string }{
		{"criLatency", `{"latency":40}`, `criLatency`},
		{"containerFlood", `{"pods":"many"}`, `containerFlood`},
	} {
		if _, err := kinds.Decode[fault.Fault](kinds.Fault, tc.kind, json.RawMessage(tc.spec)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %s: %v, want %q", tc.kind, tc.spec, err, tc.want)
		}
	}
}

// What is imitated is said.
func TestModelled(t *testing.T) {
	m, ok := newFault(t, "containerFlood", floodSpec).(fault.Modeller)
	if !ok || len(m.Modelled()) == 0 || !strings.Contains(m.Modelled()[0], "none of them ran") {
		t.Error("containerFlood doesn't say that its containers never ran")
	}
}
