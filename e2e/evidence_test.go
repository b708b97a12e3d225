//go:build cluster

package e2e_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// clone copies a run's directory without the files that were derived from its bundles.
func clone(dir string) string {
	GinkgoHelper()
	to := filepath.Join(scratch, "clone-"+draw())
	Expect(os.CopyFS(to, os.DirFS(dir))).To(Succeed())
	derived, err := filepath.Glob(filepath.Join(to, "*.*"))
	Expect(err).NotTo(HaveOccurred())
	for _, f := range derived {
		if name := filepath.Base(f); name == bundle.PlanFile || name == bundle.IndexFile { // these aren't made by judging
			continue
		}
		Expect(os.Remove(f)).To(Succeed())
	}
	return to
}

// files returns the paths of the artifacts of a kind in a run's only trial.
func files(dir string, kind bundle.Kind) []string {
	GinkgoHelper()
	trial := filepath.Join(dir, "trials", "001")
	sealed, err := bundle.Open(trial)
	Expect(err).NotTo(HaveOccurred())
	var out []string
	for _, a := range sealed.Artifacts(bundle.Query{Kind: kind}) {
		if a.Path != "" {
			out = append(out, filepath.Join(trial, filepath.FromSlash(a.Path)))
		}
	}
	Expect(out).NotTo(BeEmpty(), "the bundle has no file of kind %s", kind)
	return out
}

// remove deletes all files of a kind and returns their number.
func remove(dir string, kind bundle.Kind) int {
	GinkgoHelper()
	all := files(dir, kind)
	for _, f := range all {
		Expect(os.Remove(f)).To(Succeed())
	}
	return len(all)
}

// changeByte changes one byte in the middle of the first file of a kind.
func changeByte(kind bundle.Kind) func(string) {
	return func(dir string) {
		GinkgoHelper()
		name := files(dir, kind)[0]
		b := content(name)
		b[len(b)/2] ^= 1
		Expect(os.WriteFile(name, b, 0o644)).To(Succeed())
	}
}

// unlisted adds a file that is in no manifest.
func unlisted(dir string) {
	GinkgoHelper()
	Expect(os.WriteFile(filepath.Join(dir, "trials", "001", "artifacts", "more.txt"), []byte("more\n"), 0o644)).To(Succeed())
}

// noManifest removes the manifest, against which the bundle is verified.
func noManifest(dir string) {
	GinkgoHelper()
	Expect(os.Remove(filepath.Join(dir, "trials", "001", bundle.ManifestFile))).To(Succeed())
}

func content(name string) []byte {
	GinkgoHelper()
	b, err := os.ReadFile(name)
	Expect(err).NotTo(HaveOccurred())
	return b
}
