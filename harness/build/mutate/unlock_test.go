package mutate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/build/mutate"
)

const lockSpec = `{"package":"example.org/mod/pleg","type":"Poller","methods":["Relist"],"mutex":"lock"}`

func unlock(spec string) mutate.Mutation {
	return mutate.Mutation{Kind: "unlock", Sites: 1, Spec: json.RawMessage(spec)}
}

func TestUnlock(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"a field", "\tp.lock.Lock()\n\tdefer p.lock.Unlock()\n\tp.n++", "\tp.n++"},
		{"a variable, for reading", "\tp.n++\n\tlock.RLock()\n\tdefer lock.RUnlock()\n\tp.n++", "\tp.n++\n\tp.n++"},
		{"in a function literal", "\tdo(func() {\n\t\tp.lock.Lock()\n\t\tdefer p.lock.Unlock()\n\t\tp.n++\n\t})", "\tdo(func() {\n\t\tp.n++\n\t})"},
		{"another mutex stays", "\tp.lock.Lock()\n\tdefer p.lock.Unlock()\n\tp.other.Lock()\n\tdefer p.other.Unlock()", "\tp.other.Lock()\n\tdefer p.other.Unlock()"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := mutate.Rewrite(module("v1.34.4", relist(tc.body)), []mutate.Mutation{unlock(lockSpec)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(relist(tc.want), string(got.Files["pleg/poller.go"])); diff != "" {
				t.Errorf("rewritten source (-want +got):\n%s", diff)
			}
		})
	}
	m := unlock(lockSpec)
	if got, want := m.Label(), "(*Poller).Relist doesn't lock lock"; got != want || m.Compresses() {
		t.Errorf("label %q, compresses %v; want %q, false", got, m.Compresses(), want)
	}
}

// What is no lock for the rest of the method stays; the error says what there is.
func TestUnlockLeavesOtherLocks(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"none", "\tp.other.Lock()\n\tdefer p.other.Unlock()", "found 0 (found: method (*Poller).Relist without anything like it)"},
		{"released at once", "\tp.lock.Lock()\n\tp.n++\n\tp.lock.Unlock()", "found 0 (found: a lock without its deferred unlock after it at line 4)"},
		{"released by another", "\tp.lock.Lock()\n\tdefer p.other.Unlock()", "found 0 (found: a lock without its deferred unlock after it at line 4)"},
		{"released in another way", "\tp.lock.RLock()\n\tdefer p.lock.Unlock()", "found 0 (found: a lock without its deferred unlock after it at line 4)"},
		{"last", "\tp.lock.Lock()", "found 0 (found: a lock without its deferred unlock after it at line 4)"},
		{"shared line", "\tp.lock.Lock()\n\tdefer p.lock.Unlock(); p.n++", "found 0 (found: a lock that shares its lines with something else at line 4)"},
		{"two", strings.Repeat("\tp.lock.Lock()\n\tdefer p.lock.Unlock()\n", 2), "found 2 (found: a site at line 4; a site at line 6)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := mutate.Rewrite(module("v1.34.4", relist(tc.body)), []mutate.Mutation{unlock(lockSpec)})
			want := "want 1 lock of lock with its deferred unlock in (*Poller).Relist, " + tc.want
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v\nwant %s", err, want)
			}
		})
	}
	_, err := mutate.Rewrite(module("v1.34.4", relist("")), []mutate.Mutation{unlock(strings.Replace(lockSpec, `"lock"`, `"p.lock"`, 1))})
	if err == nil || !strings.Contains(err.Error(), "want a variable or a field without what stands before its dot") {
		t.Errorf("with a path for a mutex: %v", err)
	}
}
