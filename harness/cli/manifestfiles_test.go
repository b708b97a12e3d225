package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// inFolder writes a scenario and the files beside it, and returns the scenario's path.
func inFolder(t *testing.T, text string, beside map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "service-without-families")
	for name, content := range beside {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "scenario.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Manifests of loads and faults may stand in files of the scenario's folder.
func TestManifestsFromFiles(t *testing.T) {
	whole, err := os.ReadFile("../../scenarios/service-without-families/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const inline = "manifests: [{apiVersion: v1, kind: Node, metadata: {name: nowhere}}]"
	with := func(manifests string) string {
		if strings.Count(string(whole), inline) != 1 {
			t.Fatal("the scenario makes no Node")
		}
		return strings.Replace(string(whole), inline, "manifests: "+manifests, 1)
	}
	const nodes = "apiVersion: v1\nkind: Node\nmetadata: {name: nowhere}\n---\n# nothing\n---\napiVersion: v1\nkind: Node\nmetadata:\n  name: $(second)\n"
	text := strings.Replace(with("[{file: m/nodes.yaml}, {apiVersion: v1, kind: Node, metadata: {name: third}}]"), "  pairs:\n",
		"  parameters: [{name: second, default: here, doc: a name}]\n\n  pairs:\n", 1)
	var digests []string
	for _, more := range []string{"", "# more\n"} {
		s, err := scenario.Load(inFolder(t, text, map[string]string{"m/nodes.yaml": nodes + more}))
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, s.Origin.Digest)
		if s, err = scenario.Override(s, map[string]string{"second": "there"}); err != nil {
			t.Fatal(err)
		}
		const want = `{"manifests":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"nowhere"}},` +
			`{"apiVersion":"v1","kind":"Node","metadata":{"name":"there"}},{"apiVersion":"v1","kind":"Node","metadata":{"name":"third"}}]}`
		if got := string(s.Spec.Loads[0].Spec); got != want {
			t.Errorf("the load is\n%s\nwant\n%s", got, want)
		}
	}
	if digests[0] == digests[1] {
		t.Error("another file beside the scenario has the same digest")
	}
	const at = ": spec.loads.node.objects"
	for manifests, want := range map[string]string{
		"[{file: m/other.yaml}]":  `:78:30` + at + `.manifests[0].file: "m/other.yaml" is not in the scenario's folder`,
		"[{file: ../nodes.yaml}]": `:78:30` + at + `.manifests[0].file: "../nodes.yaml" is not below the scenario's folder`,
		"[{file: m/bad.yaml}]":    `:78:30` + at + `.manifests[0].file: "m/bad.yaml", document 2, line 1 of it: is not YAML: mapping value is not allowed in this context`,
		"[{file: m/twice.yaml}]":  `:78:30` + at + `.manifests[0].file: "m/twice.yaml", document 1, line 3 of it: metadata: stands here a second time (first at line 2)`,
		"[{file: m/link.yaml}]":   `:78:30` + at + `.manifests[0].file: "m/link.yaml" can't be read: `,
		"[{file: m}]":             `:78:30` + at + `.manifests[0].file: "m" is no regular file`,
		"[{file: m/empty.yaml}]":  `:78:30` + at + `.manifests[0].file: "m/empty.yaml" has no object`,
		"[{apiVersion: v1, kind: Node, metadata: {name: $(n)}}, {file: m/nodes.yaml}]": `:78:83` + at + `.manifests[1].metadata.name: $(second) names no parameter (want one of arm, n, node); $$(second) is the text itself`,
		"[{file: m/nameless.yaml}]": `:78:29` + at + `.manifests[0]: manifests[0], a Node, has no metadata.name`,
	} {
		path := inFolder(t, with(manifests), map[string]string{"m/nodes.yaml": nodes, "m/empty.yaml": "# nothing\n",
			"m/bad.yaml": "a: b\n---\na: b: c\n", "m/twice.yaml": "apiVersion: v1\nmetadata: {name: a}\nmetadata: {name: b}\n", "m/nameless.yaml": "apiVersion: v1\nkind: Node\n"})
		if err := os.Symlink("/etc/hostname", filepath.Join(filepath.Dir(path), "m", "link.yaml")); err != nil {
			t.Fatal(err)
		}
		if _, err := scenario.Load(path); err == nil || !strings.Contains(err.Error(), path+want) {
			t.Errorf("%s: %v\nwant %s", manifests, err, path+want)
		}
	}
}
