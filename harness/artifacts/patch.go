package artifacts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// patchOf puts an arm's patch upon its version once more, and returns what it changes. The patch may have been edited
// since it was read for the plan; then the tree would be another one than the plan's, which is an error.
func (a *Artifacts) patchOf(
	ctx context.Context,
	s scenario.Source,
) (p build.Patched, said []string, patch []byte, err error) {
	if patch, err = os.ReadFile(s.Patch); err != nil {
		return p, nil, nil, fmt.Errorf("reading the patch: %w", err)
	}
	if p, err = a.builder.Patch(ctx, s.Module, s.Version, s.Package, patch); err != nil {
		return p, nil, nil, err
	}
	if filepath.Base(filepath.Dir(p.Dir)) != filepath.Base(filepath.Dir(s.Dir)) { // the key in the cache, wherever that is
		return p, nil, nil, fmt.Errorf("the patch %s is another one than when the run was planned", s.Patch)
	}
	said = append(said, fmt.Sprintf("%s %s with the patch %s, which changes %d files", s.Module, s.Version, filepath.Base(s.Patch), len(p.Files)))
	for _, f := range p.Files {
		said = append(said, "patched: "+f.String())
	}
	return p, append(said, p.Said...), patch, nil
}
