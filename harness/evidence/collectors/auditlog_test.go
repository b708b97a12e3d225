package collectors_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/collectors"
)

// holder is a node whose components' files are in a folder of this host.
type holder struct {
	node
	dir string
}

func (h holder) Folder(string) string { return h.dir }

func (h holder) Abilities() cluster.NodeAbilities {
	return cluster.NodeAbilities{LogFolder: func() string { return h.dir }}
}

// audited is a line of an audit log, with so many annotations.
func audited(id string, code, annotations int) string {
	var all []string
	for i := range annotations {
		all = append(all, fmt.Sprintf(`"webhook.example.org/k%05d":"v"`, i))
	}
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":%q,"stage":"ResponseComplete",`+
		`"requestURI":"/api/v1/namespaces/n/configmaps?timeout=2s","verb":"create","user":{"username":"u"},"objectRef":{"resource":"configmaps","namespace":"n","name":"item-1","apiVersion":"v1"},"responseStatus":{"code":%d},`+
		`"requestReceivedTimestamp":"2026-11-22T16:00:00.000000Z","stageTimestamp":"2026-11-22T16:00:02.000001Z","annotations":{%s}}`+"\n", id, code, strings.Join(all, ","))
}

// Lines come once, whole ones only, and what is no event is told from one. There may be no file at first.
func TestAuditLog(t *testing.T) {
	dir := t.TempDir()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &collectors.AuditLog{File: "audit.log", Interval: metav1.Duration{Duration: 10 * time.Millisecond}}
	done := make(chan error, 1)
	go func() {
		done <- c.Stream(ctx, capture.Target{Arm: "fixed", Node: holder{dir: dir}, Component: &component{}}, w)
	}()
	seen := func(n int) {
		t.Helper()
		controltest.Eventually(t, fmt.Sprintf("%d lines", n), func() string {
			all := w.View().Artifacts(bundle.Query{Kind: bundle.Audit})
			if len(all) == 1 && all[0].Coverage != nil && !all[0].Coverage.Last.IsZero() && len(readLines[bundle.AuditEvent](t, w, all[0])) == n {
				return ""
			}
			return fmt.Sprintf("%+v", all)
		})
	}
	write := func(text string) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(dir, "audit.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	seen(0)
	large := audited("b", 504, 16000)
	write(audited("a", 201, 2) + large[:300_000])
	seen(1)
	write(large[300_000:] + "{\"kind\":\"Event\",\n" + `{"kind":"Pod"}` + "\n")
	seen(4)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got := readLines[bundle.AuditEvent](t, w, w.View().Artifacts(bundle.Query{})[0])
	event := bundle.AuditEvent{Time: time.Date(2026, 11, 22, 16, 0, 2, 1000, time.UTC), Stage: "ResponseComplete", Verb: "create", Path: "/api/v1/namespaces/n/configmaps?timeout=2s",
		User: "u", Resource: "configmaps", Namespace: "n", Name: "item-1"}
	a, b := event, event
	a.ID, a.Code, a.Annotations, b.ID, b.Code, b.Annotations = "a", 201, 2, "b", 504, 16000
	want := []bundle.AuditEvent{a, b, {Error: `unexpected end of JSON input: "{\"kind\":\"Event\","`}, {Error: `it is no audit event: "{\"kind\":\"Pod\"}"`}}
	ignore := cmpopts.IgnoreFields(bundle.AuditEvent{}, "Bytes")
	if diff := cmp.Diff(want[:2], got[:2], ignore); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[2:], got[2:], ignore, cmpopts.IgnoreFields(bundle.AuditEvent{}, "Time")); diff != "" {
		t.Errorf("other lines (-want +got):\n%s", diff)
	}
	if got[1].Bytes != len(large)-1 {
		t.Errorf("a line of %d bytes is said to have %d", len(large)-1, got[1].Bytes)
	}
}

// Whose write it was, and of what, is kept of a request for a subresource of an API group, too.
func TestAuditLogSaysWhoseWriteItWas(t *testing.T) {
	dir := t.TempDir()
	line := `{"kind":"Event","auditID":"a","stage":"ResponseComplete","verb":"patch","user":{"username":"system:serviceaccount:relapse-fixed:fleet-agent"},` +
		`"objectRef":{"resource":"bundledeployments","namespace":"relapse-fixed","name":"bundle-fixed","apiGroup":"fleet.cattle.io","subresource":"status"},` +
		`"responseStatus":{"code":409},"stageTimestamp":"2026-11-22T16:00:02.000001Z"}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "audit.log"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &collectors.AuditLog{File: "audit.log", Interval: metav1.Duration{Duration: 10 * time.Millisecond}}
	done := make(chan error, 1)
	go func() {
		done <- c.Stream(ctx, capture.Target{Arm: bundle.Shared, Node: holder{dir: dir}, Component: &component{}}, w)
	}()
	controltest.Eventually(t, "the line", func() string {
		if all := w.View().Artifacts(bundle.Query{}); len(all) == 0 || all[0].Size == 0 {
			return "nothing is written"
		}
		return ""
	})
	cancel()
	if err := controltest.Soon(t, "the stream's end", done); err != nil {
		t.Fatal(err)
	}
	want := []bundle.AuditEvent{{Time: time.Date(2026, 11, 22, 16, 0, 2, 1000, time.UTC), ID: "a", Stage: "ResponseComplete", Verb: "patch",
		User: "system:serviceaccount:relapse-fixed:fleet-agent", Resource: "bundledeployments.fleet.cattle.io", Subresource: "status",
		Namespace: "relapse-fixed", Name: "bundle-fixed", Code: 409, Bytes: len(line) - 1}}
	if diff := cmp.Diff(want, readLines[bundle.AuditEvent](t, w, w.View().Artifacts(bundle.Query{})[0])); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAuditLogRefusesPaths(t *testing.T) {
	c := collectors.AuditLog{File: "../audit.log"}
	want := "file is \"../audit.log\" (want the name of a file: audit.log)\ninterval is 0s (want above 0)"
	if err := c.Validate(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// machine is a node whose only file is answered by a test.
type machine struct {
	node
	cluster.Execer
	read func(offset, most int) (string, error)
}

func (machine) Folder(string) string { return "/files" }

func (m machine) Abilities() cluster.NodeAbilities { return cluster.NodeAbilities{Commands: m} }

func (m machine) Look(_ context.Context, _ []byte, argv ...string) ([]byte, error) {
	var offset, most int
	if _, err := fmt.Sscan(argv[5]+" "+argv[6], &offset, &most); err != nil {
		return nil, err
	}
	out, err := m.read(offset-1, most)
	return []byte(out), err
}

// The file keeps what nobody came to read, so a look that comes late leaves no gap, and nothing is lost. What was never
// read is one.
func TestAuditLogOnABusyHost(t *testing.T) {
	for _, tc := range []struct {
		name     string
		from, to time.Duration // that nobody comes
		replaced time.Duration // when there is another file, which is longer; 0 is never
		events   int
		gaps     []string
	}{
		{"late", 19 * time.Second, 41 * time.Second, 0, 59, nil},
		{"never again", 19 * time.Second, time.Hour, 0, 19, []string{"18s-58.5s no answer"}},
		{"replaced meanwhile", 19 * time.Second, 41 * time.Second, 30 * time.Second, 19, []string{"18s-58.5s audit.log is another file since BYTES bytes were read of it"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				n := machine{read: func(offset, most int) (string, error) {
					now := time.Since(began)
					if now >= tc.from && now <= tc.to {
						return "", errors.New("no answer")
					}
					all := ""
					for i := range int(now/time.Second) + 1 {
						all += audited(fmt.Sprint(i), 504, 1)
					}
					number := 7
					if tc.replaced > 0 && now > tc.replaced {
						number = 8
					}
					return fmt.Sprintf("%d %d\n%s", len(all), number, all[offset:min(len(all), offset+most)]), nil
				}}
				w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 58500*time.Millisecond)
				defer cancel()
				c := &collectors.AuditLog{File: "audit.log", Interval: metav1.Duration{Duration: time.Second}}
				if err := c.Stream(ctx, capture.Target{Arm: "fixed", Node: n, Component: &component{}}, w); err != nil {
					t.Fatal(err)
				}
				a := w.View().Artifacts(bundle.Query{Kind: bundle.Audit})[0]
				var gaps []string
				for _, g := range a.Coverage.Gaps {
					gaps = append(gaps, fmt.Sprintf("%s-%s %s", g.From.Sub(began), g.To.Sub(began), regexp.MustCompile(`since \d+ bytes`).ReplaceAllString(g.Reason, "since BYTES bytes")))
				}
				if events := readLines[bundle.AuditEvent](t, w, a); len(events) != tc.events || !slices.Equal(gaps, tc.gaps) {
					t.Errorf("%d events and the gaps %q, want %d and %q", len(events), gaps, tc.events, tc.gaps)
				}
			})
		})
	}
}
