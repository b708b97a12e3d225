package export_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kube-relapse/relapse/internal/schematest"
)

// creDocument is what the tests read of an export.
type creDocument struct{ Rules []creRule }

type creRule struct {
	Metadata struct{ ID string }
	Cre      struct {
		ID       string
		Severity int
	}
	Rule struct {
		Set struct {
			Event  struct{ Source string }
			Window string
			Match  []struct {
				Regex string
				Count int
			}
		}
	}
}

func creRules(t *testing.T) (string, creDocument) {
	t.Helper()
	text := exported(t, "cre")
	var doc creDocument
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return text, doc
}

func TestCREIsWhatItsDocumentationAsksFor(t *testing.T) {
	raw, err := os.ReadFile("testdata/cre-schema.json")
	if err != nil {
		t.Fatal(err)
	}
	compiled := schematest.Compile(t, json.RawMessage(raw))
	text, doc := creRules(t)
	if err := compiled.Validate(schematest.YAML(t, []byte(text))); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for _, r := range doc.Rules {
		lines := 0
		for _, m := range r.Rule.Set.Match {
			lines += max(m.Count, 1)
			if _, err := regexp.Compile(m.Regex); err != nil {
				t.Errorf("%s: %v", r.Cre.ID, err)
			}
		}
		if (lines > 1) != (r.Rule.Set.Window != "") { // preq refuses both others
			t.Errorf("%s: %d lines, and the window is %q", r.Cre.ID, lines, r.Rule.Set.Window)
		}
		if seen[r.Cre.ID] || seen[r.Metadata.ID] {
			t.Errorf("%s: its id is another rule's", r.Cre.ID)
		}
		seen[r.Cre.ID], seen[r.Metadata.ID] = true, true
	}
}

// A rule finds the incident's own lines, all of them, and not another panic of the same component.
func TestCREFindsTheIncidentsLines(t *testing.T) {
	_, doc := creRules(t)
	for _, c := range []struct {
		id, source, window string
		severity           int
		lines              string
		want               bool
	}{
		{"RELAPSE-SCHEDULER-NIL-POINTER-DIED-OF-IT", "cre.log.kube-scheduler", "5s", 1, "panic: runtime error: invalid memory address or nil pointer dereference\n" +
			"goroutine 1 [running]:\nk8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits.(*CSILimits).checkAttachableInlineVolume(0x1)\n", true},
		{"RELAPSE-SCHEDULER-NIL-POINTER-DIED-OF-IT", "cre.log.kube-scheduler", "5s", 1,
			"panic: runtime error: invalid memory address or nil pointer dereference\ngoroutine 1 [running]:\nmain.main()\n", false},
		// The sign is decisive about one Job, and the rule counts the lines of all of them.
		{"RELAPSE-JOB-STATUS-REFUSED-REFUSED", "cre.log.kube-controller-manager", "1h0m0s", 3, strings.Repeat(`Job.batch "a" is invalid: status.ready: `+
			"Invalid value: 1: there can't be more ready pods than active\n", 2), true},
		{"RELAPSE-CONCURRENT-MAP-CRASH-SAYS-CONCURRENT-MAP", "cre.log.kube-apiserver", "", 3, "fatal error: concurrent map iteration and map write\n", true},
		{"RELAPSE-FLEET-STATUS-CHURN-HISTORY-READ-ALL-THE-TIME", "cre.log.fleet-agent", "2m0s", 3, strings.Repeat("getting history for release x\n", 30), true},
		{"RELAPSE-FLEET-STATUS-CHURN-HISTORY-READ-ALL-THE-TIME", "cre.log.fleet-agent", "2m0s", 3, strings.Repeat("getting history for release x\n", 29), false},
	} {
		i := slices.IndexFunc(doc.Rules, func(r creRule) bool { return r.Cre.ID == c.id })
		if i < 0 {
			t.Errorf("there is no rule %s", c.id)
			continue
		}
		r, found := doc.Rules[i], true
		if r.Rule.Set.Event.Source != c.source || r.Rule.Set.Window != c.window || r.Cre.Severity != c.severity {
			t.Errorf("%s: %s, window %q, severity %d", c.id, r.Rule.Set.Event.Source, r.Rule.Set.Window, r.Cre.Severity)
		}
		for _, m := range r.Rule.Set.Match {
			n := 0
			for line := range strings.Lines(c.lines) {
				if regexp.MustCompile(m.Regex).MatchString(strings.TrimSuffix(line, "\n")) {
					n++
				}
			}
			found = found && n >= max(m.Count, 1)
		}
		if found != c.want {
			t.Errorf("%s finds itself in %q: %t", c.id, c.lines, found)
		}
	}
}

func TestCRESaysWhatIsLost(t *testing.T) {
	text, _ := creRules(t)
	for _, want := range []string{
		"# Written by relapse match --export cre: ",
		"# - all rules: preq shows the versions that are affected, and doesn't ask for them\n",
		"# - pleg-deadlock, relist-blocked-for-minutes: sync-loop-skips (goroutines) can't be said\n",
		"# - pleg-deadlock, relist-blocked-for-minutes: relist-sends (alternatives) can't be said\n",
		"# - pleg-deadlock, node-not-ready: node-not-ready (nodeReady) can't be said\n",
		"# - scheduler-nil-pointer, died-of-it: died-of-it: the lines of the stack have to come within 5s of the message, and which goroutine panicked is not told\n",
		"# - job-status-refused, refused: refused: its 2 lines have to be within 1h0m0s\n",
		"# - job-status-refused, refused: refused: lines about different things are counted together\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("what was lost lacks %q:\n%s", want, text[:min(len(text), 6000)])
		}
	}
}
