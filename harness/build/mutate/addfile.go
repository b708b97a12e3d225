package mutate

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"path"
	"strings"

	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Mutation, kinds.Kind[Shape]{
		Name: "addFile",
		Doc: "Adds a file to a package, for code that a rewrite needs.\n\n" +
			"The package must not have a file of that name. The only site is the file itself, so sites is 1.",
		Example: `kind: addFile
sites: 1
spec:
  package: k8s.io/kubernetes/pkg/kubelet/pleg
  name: queue.go
  content: |
    package pleg

    // queue holds events without a limit.
    type queue struct{ events []*PodLifecycleEvent }
`,
		New: func() Shape { return &AddFile{} },
	})
}

// AddFile adds one Go file to a package.
type AddFile struct {
	Package string `json:"package"` // import path
	Name    string `json:"name"`    // base name
	Content string `json:"content"` // all of it, from its package clause on
}

// Validate implements Shape.
func (a *AddFile) Validate() error {
	if a.Name != path.Base(a.Name) || !strings.HasSuffix(a.Name, ".go") || strings.HasSuffix(a.Name, "_test.go") {
		return fmt.Errorf("name %q is no Go file's base name", a.Name)
	}
	if strings.TrimSpace(a.Content) == "" {
		return errors.New("no content")
	}
	if _, err := parser.ParseFile(token.NewFileSet(), a.Name, a.Content, 0); err != nil {
		return fmt.Errorf("parsing content: %w", err)
	}
	return nil
}

// Scope implements Shape.
func (a *AddFile) Scope() Where { return Where{Package: a.Package} }

// Declaration implements Shape.
func (a *AddFile) Declaration() string { return "package " + a.Package }

// Want implements Shape.
func (a *AddFile) Want() string { return "new file " + a.Name + " in " + a.Package }

// Label implements Shape.
func (a *AddFile) Label() string { return fmt.Sprintf("%s has a file of ours, %s", a.Package, a.Name) }

// Describe returns the plan's description of the mutation, without the content.
func (a *AddFile) Describe() string { return a.Label() }

// Find implements Shape. Existing files stay unchanged.
func (a *AddFile) Find(*File) Found { return Found{Declared: true} }

// Added implements Adder.
func (a *AddFile) Added() (string, []byte) { return a.Name, []byte(a.Content) }
