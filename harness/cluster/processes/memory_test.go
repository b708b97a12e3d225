package processes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A component over its limit is killed by the kernel, which is told from any other end, and starts again under the same
// limit. Where this user can't limit anything, whoever asks is told why.
func TestMemoryIsLimited(t *testing.T) {
	s := supervise(t, map[string]string{"hungry": `
		[ -e eat ] || exec sleep 1000
		until grep -q hungry /proc/self/cgroup; do :; done # what it starts before is not limited
		head -c 100000000 /dev/zero | tail >/dev/null`})
	s.order(t, orderStart+"hungry")
	s.until(t, "hungry", runs)
	k := componentOf(s, "hungry")
	if noMemoryLimits() != "" {
		if err := k.limit(t.Context(), "32Mi"); err == nil || !strings.Contains(err.Error(), "this user can't make one") {
			t.Errorf("without cgroups: %v", err)
		}
		return
	}
	if err := k.memoryLimit(t.Context(), "32Mi"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeMemoryGroups(context.Background(), s.home, filepath.Base(s.home)); err != nil {
			t.Error(err)
		}
		if _, err := openMemoryGroup(memoryGroupName(filepath.Base(s.home), "hungry")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("its cgroup is still there: %v", err)
		}
	})
	if err := k.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	limited := s.until(t, "hungry", func(st state) bool { return runs(st) && st.Starts == 2 })
	if limited.Last == nil || limited.Last.OutOfMemory {
		t.Errorf("restarted on purpose it is said to have ended with %+v", limited.Last)
	}
	if err := os.WriteFile(filepath.Join(s.home, "eat"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := k.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	killed := s.until(t, "hungry", func(st state) bool { return st.Restarts == 1 && st.Exit != "" })
	if e := killed.Last; e == nil || e.Start != 3 || e.Code != 137 || !e.OutOfMemory {
		t.Errorf("it is said to have ended with %+v, want code 137, out of memory, at its second try under the limit", e)
	}
	status, err := k.Status(t.Context())
	if err != nil || !status.LastOutOfMemory {
		t.Errorf("its status is %+v, %v", status, err)
	}
}

func TestLimitOfWhatIsNoAmount(t *testing.T) {
	if why := noMemoryLimits(); why != "" {
		t.Logf("refused before the amount is looked at: %s", why)
		return
	}
	s := supervise(t, map[string]string{"one": "exec sleep 1000"})
	if err := componentOf(s, "one").Limit(t.Context(), "much"); err == nil ||
		!strings.Contains(err.Error(), "limiting the memory of the one of ") ||
		!strings.Contains(err.Error(), " to much: quantities must match") {
		t.Errorf("it ended with %v", err)
	}
}
