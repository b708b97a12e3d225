package cli

import "testing"

func TestDoctorLooksAtTheCacheThatRunsUse(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("RELAPSE_CACHE", dir)
	if got, err := (doctorFlags{}).options(); err != nil || got.CacheDir != dir {
		t.Errorf("it looks at %q, %v, want %q", got.CacheDir, err, dir)
	}
}
