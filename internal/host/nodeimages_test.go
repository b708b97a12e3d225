package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/internal/docker"
	"github.com/kube-relapse/relapse/internal/host"
)

// assembledEngine is a client whose engine has one node image, which was assembled for v1.34.4. It writes what it is
// asked for to the file asked beside it.
const assembledEngine = `#!/bin/sh
echo "$*" >>"${0%/*}/asked"
case "$*" in
"image ls --quiet"*) echo sha256:aa ;;
"image inspect sha256:aa") echo '[{"Id":"sha256:aa","RepoTags":["relapse/node:v1.34.4-0123456789ab"]}]' ;;
*) echo "Error: No such image" >&2; exit 1 ;;
esac
`

// An image that was assembled here earlier is looked for, and no registry is asked for the official one.
func TestAnAssembledImageIsUsedAgain(t *testing.T) {
	dir := t.TempDir()
	client := &docker.Client{Path: filepath.Join(dir, "docker")}
	if err := os.WriteFile(client.Path, []byte(assembledEngine), 0o755); err != nil {
		t.Fatal(err)
	}
	images, err := host.OpenNodeImages(t.TempDir(), client, nil)
	if err != nil {
		t.Fatal(err)
	}
	for version, there := range map[string]bool{"v1.34.4": true, "v1.34.8": false} {
		_ = os.Remove(filepath.Join(dir, "asked"))
		needs := cluster.Needs{Topologies: []cluster.Topology{{Version: version}}}
		if got, err := images.There(t.Context(), needs); err != nil || got != there {
			t.Errorf("%s: an image is there: %t, %v; want %t", version, got, err, there)
		}
		_, err := images.Get(t.Context(), needs)
		if want := "assembling a node image for " + version + ": nothing can be built here"; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		asked, rerr := os.ReadFile(filepath.Join(dir, "asked"))
		if pulled := strings.Contains(string(asked), "pull kindest/node:v1.34."); errors.Is(rerr, os.ErrNotExist) || pulled == there {
			t.Errorf("%s: a registry was asked: %t, want %t:\n%s", version, pulled, !there, asked)
		}
	}
}
