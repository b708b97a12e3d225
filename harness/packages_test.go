package harness_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// module is the path that all packages of ours begin with.
const module = "github.com/kube-relapse/relapse/"

// listed is a package as `go list` describes it.
type listed struct {
	ImportPath                         string
	ForTest                            string
	Imports, TestImports, XTestImports []string

	ours bool
}

// packages are all packages of the module and all that they need, tests included, by their short names.
var packages = sync.OnceValues(func() (map[string]listed, error) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-test", "-json=ImportPath,ForTest,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = ".."
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	all := map[string]listed{}
	for d := json.NewDecoder(out); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if p.ForTest != "" || strings.HasSuffix(p.ImportPath, ".test") {
			continue // a package once more, as its tests see it
		}
		p.ours = strings.HasPrefix(p.ImportPath, module)
		all[short(p.ImportPath)] = p
	}
	return all, cmd.Wait()
})

func listPackages(t *testing.T) map[string]listed {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatal("listing packages: ", err)
	}
	return all
}

func short(path string) string { return strings.TrimPrefix(path, module) }

// ours reports whether a short name is one of the module's.
func ours(path string) bool {
	return oneBelow(path, []string{"harness", "fixtures", "e2e", "scenarios", "internal"})
}

// below reports whether a path is prefix or lies under it.
func below(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }

func oneBelow(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return below(path, p) })
}
