package trial_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// afterLoad makes the fault of slow-etcd come after a load.
var afterLoad = []string{
	"  loads:\n", "  loads:\n    - {name: creations, kind: requests, target: {mode: all, selector: {component: kube-apiserver}}, spec: {method: POST, path: /api/v1/namespaces/relapse-creations/configmaps, body: {apiVersion: v1, kind: ConfigMap, metadata: {name: item-$(n)}}, calls: 2, timeout: 1s}}\n",
	"kind: latency, ", "kind: latency, after: {name: creations}, ",
}

// another adds a fault that comes after a load, beside the one that is there.
var another = append(afterLoad[:2:2], "  phases:\n",
	"    - {name: one-more, kind: objects, after: {name: creations}, target: {mode: all, selector: {component: kube-apiserver}}, spec: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: one-more}}]}}\n\n  phases:\n")

// moreLoad adds a load that comes after a load, while the fault comes by itself.
var moreLoad = []string{afterLoad[0], afterLoad[1] +
	"    - {name: more, kind: requests, after: {name: creations}, target: {mode: all, selector: {component: kube-apiserver}}, spec: {path: /api/v1/nodes}}\n"}

// A fault or load that can't come any more ends the trial at once if no arm is the reason. An arm that is, is judged by what
// there is, and the others go on.
func TestAFaultThatNeverComes(t *testing.T) {
	candidate := map[string]string{"vulnerable": leaks, "fixed": "", scenario.Candidate: ""}
	for _, c := range []struct {
		name     string
		scenario []string
		programs map[string]string
		refuse   []string // arms whose API server refuses what the fault comes after
		verdict  verdict.Verdict
		outcomes string
		went     string // the last arm
		reason   string // of the last arm
	}{
		{"all arms refuse", afterLoad, pair, []string{"vulnerable", "fixed"}, verdict.VerdictError, "Error Error", "steady baseline fault -fault",
			"creations never took effect, so slow-etcd, which comes after it, is not injected; the arm is not the reason"},
		{"the candidate refuses", afterLoad, candidate, []string{scenario.Candidate}, verdict.VerdictInconclusive, "Reproduced NotReproduced Inconclusive",
			"steady baseline fault lifting -fault recovery end", "the exposure is not met, and must be met"},
		{"the candidate refuses, and another fault was enough for its exposure", another, candidate, []string{scenario.Candidate},
			verdict.VerdictInconclusive, "Reproduced NotReproduced Inconclusive", "steady baseline fault +fault lifting -fault -fault recovery end",
			"the signature is not met, but the arm wasn't put to the whole test: one-more never came"},
		{"the candidate refuses what a load comes after", moreLoad, candidate, []string{scenario.Candidate}, verdict.VerdictInconclusive, "Reproduced NotReproduced Inconclusive",
			"steady baseline fault +fault lifting -fault recovery end", "the signature is not met, but the arm wasn't put to the whole test: more never came"},
		{"none refuses what a load comes after", moreLoad, candidate, nil, verdict.Validated, "Reproduced NotReproduced NotReproduced", whole, "the subject is well"},
		{"none refuses", afterLoad, candidate, nil, verdict.Validated, "Reproduced NotReproduced NotReproduced", whole, "the subject is well"},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			r := newRunOf(t, slowEtcd(t, c.scenario...), c.programs, plan.Options{})
			r.scripted = func(arm string, s *server) {
				if slices.Contains(c.refuse, arm) {
					s.refuses("/namespaces/relapse-creations/configmaps")
				}
			}
			err := r.trial(t.Context(), t, 0)
			if failed := err != nil && strings.Contains(err.Error(), c.reason); failed != (c.verdict == verdict.VerdictError) || err != nil && !failed {
				t.Fatalf("it ended with %v", err)
			}
			v := r.judge(t, 0)
			arms := []string{"vulnerable", "fixed", scenario.Candidate}[:len(c.programs)]
			if v.Verdict != c.verdict || r.outcomes(arms...) != c.outcomes {
				t.Errorf("it is %s: %s, want %s: %s", v.Verdict, r.outcomes(arms...), c.verdict, c.outcomes)
			}
			last := v.Arms[len(v.Arms)-1]
			if !strings.Contains(last.Reason, c.reason) {
				t.Errorf("the reason of %s is %q, want %q", last.Name, last.Reason, c.reason)
			}
			if got := r.went(last.Name); got != c.went {
				t.Errorf("%s went through %s, want %s", last.Name, got, c.went)
			}
			missed := r.says(event.FaultMissed, ", which comes after it, is not injected: it did in ") ||
				r.says(event.LoadMissed, ", which comes after it, doesn't run: it did in ")
			if missed != (c.verdict == verdict.VerdictInconclusive) {
				t.Errorf("it is recorded that something is missed: %t", missed)
			}
			if took := r.length("fault"); c.verdict == verdict.VerdictError && took > 30*time.Second {
				t.Errorf("its fault phase took %s", took)
			}
		})
	}
}

// refuses makes the API server refuse every creation of a path.
func (s *server) refuses(path string) {
	s.api.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		refused := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, path)
		if refused {
			http.Error(w, "on purpose", http.StatusForbidden)
		}
		return refused
	})
}

// length is how long a phase lasted, up to the next or the last event.
func (r *run) length(phase string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.heard, func(e event.Event) bool { return e.Type == event.Phase && e.Message == phase })
	if i < 0 {
		return 0
	}
	for _, e := range r.heard[i+1:] {
		if e.Type == event.Phase {
			return e.Time.Sub(r.heard[i].Time)
		}
	}
	return r.heard[len(r.heard)-1].Time.Sub(r.heard[i].Time)
}
