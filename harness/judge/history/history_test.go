package history_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/judge/history"
)

var t0 = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// nights is an arm's trials, one a day: R reproduced, n not, ? inconclusive.
func nights(role, letters string) (out []history.Entry) {
	for i, l := range letters {
		out = append(out, history.Entry{Time: t0.AddDate(0, 0, i), Scenario: "x", Pair: "modern", Arm: role, Role: role, Trial: "001", Digest: "aaaaaaaaaaaaaaaa",
			Outcome: map[rune]string{'R': "Reproduced", 'n': "NotReproduced", '?': "Inconclusive"}[l], Run: fmt.Sprintf("%08d-x", i)})
	}
	return out
}

func TestAppendAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs", history.File)
	want := nights("vulnerable", "Rn?")
	want[0].Versions, want[0].Seed, want[0].Seconds = map[string]string{"kubernetes": "v1.34.4"}, 7, 61.5
	for _, part := range [][]history.Entry{want[:1], want[1:], nil} {
		if err := history.Append(path, part); err != nil {
			t.Fatal(err)
		}
	}
	got, skipped, err := history.Read(path)
	if err != nil || len(skipped) > 0 {
		t.Fatal(skipped, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := history.Append(path, []history.Entry{{Time: t0, Scenario: "x"}}); err == nil || !strings.HasSuffix(err.Error(), "history.jsonl: it has no pair") {
		t.Errorf("an entry that lacks its pair: %v", err)
	}
}

func TestReadSaysWhatItSkips(t *testing.T) {
	path := filepath.Join(t.TempDir(), history.File)
	if _, _, err := history.Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no ledger: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("reading made a ledger")
	}
	text := `{"time":"2026-03-04T05:06:07Z","scenario":"x","pair":"p","arm":"fixed","role":"fixed","outcome":"Broken"}` + "\nnonsense\n\n{}\n" + `{"time":"2026-03-04T05:06:07Z","scen`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := history.Append(path, nights("vulnerable", "R")); err != nil { // after a line that a crash left torn
		t.Fatal(err)
	}
	entries, skipped, err := history.Read(path)
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	var said []string
	for _, s := range skipped {
		said = append(said, strings.TrimPrefix(s.String(), path))
	}
	want := []string{":2: invalid character 'o' in literal null (expecting 'u')", ":4: it has no time", ":5: unexpected end of JSON input"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAppendAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), history.File)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := history.Append(path, nights("vulnerable", "RRRRR")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if entries, skipped, err := history.Read(path); err != nil || len(skipped) > 0 || len(entries) != 100 {
		t.Errorf("%d entries, %v, %v", len(entries), skipped, err)
	}
}
