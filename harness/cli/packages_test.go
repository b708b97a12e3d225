package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// Package managers get the checksums of the very archives. There is no brew or krew here: that the formula and the
// manifest install was not tried.
func TestPackagesOfARelease(t *testing.T) {
	dir, sums := t.TempDir(), ""
	for i, platform := range []string{"darwin_amd64", "darwin_arm64", "linux_amd64"} {
		sums += fmt.Sprintf("%064d  relapse_v9.9.9_%s.tar.gz\n%064d  relapse_v9.9.9_%s.spdx.json\n", i+1, platform, i+10, platform)
	}
	pack := func() (string, error) {
		out, err := exec.Command("../../.ci/packages", dir, "v9.9.9").CombinedOutput()
		return string(out), err
	}
	if err := os.WriteFile(filepath.Join(dir, "checksums.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := pack(); err == nil || !strings.Contains(out, "has no archive of v9.9.9\nhint: ") {
		t.Errorf("without archives it says %q, %v", out, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "checksums.txt"), []byte(sums), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := pack(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var krew struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version   string
			Platforms []struct {
				Selector struct {
					MatchLabels map[string]string `yaml:"matchLabels"`
				}
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(raw, &krew); err != nil {
		t.Fatal(err)
	}
	if krew.Metadata.Name != "relapse" || krew.Spec.Version != "v9.9.9" || len(krew.Spec.Platforms) != 3 {
		t.Errorf("the manifest of krew has %+v", krew)
	}
	formula, err := os.ReadFile(filepath.Join(dir, "relapse.rb"))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range krew.Spec.Platforms {
		at := fmt.Sprintf("/v9.9.9/relapse_v9.9.9_%s_%s.tar.gz", p.Selector.MatchLabels["os"], p.Selector.MatchLabels["arch"])
		if !strings.HasSuffix(p.URI, at) || p.SHA256 != fmt.Sprintf("%064d", i+1) || p.Bin != "relapse" {
			t.Errorf("the manifest of krew has %+v, want the archive %s", p, at)
		}
		if want := fmt.Sprintf("    url %q\n    sha256 %q\n", p.URI, p.SHA256); !strings.Contains(string(formula), want) {
			t.Errorf("the formula lacks\n%s", want)
		}
	}
}
