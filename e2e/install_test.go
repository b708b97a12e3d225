//go:build cluster

package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// What is served is what a release would be: the commit that is checked out, without what is in no commit.
var _ = Describe("The program that go install makes", Label("nightly"), Ordered, func() {
	var version, installed string // of what is served, and the installed program's path

	BeforeAll(func(ctx SpecContext) {
		// Go never fetches a version twice, so that each commit needs its own.
		version = "v0.0.1-commit." + strings.TrimSpace(gitCommand(ctx, "rev-parse", "--short", "HEAD"))
		proxy := httptest.NewServer(http.FileServer(http.Dir(moduleProxy(ctx, version))))
		DeferCleanup(proxy.Close)
		bin, err := os.MkdirTemp("", "relapse-installed-") // readable for everybody, which the suite's folder isn't
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error { return os.RemoveAll(bin) })
		Expect(os.Chmod(bin, 0o755)).To(Succeed())
		others := strings.TrimSpace(goCommand(ctx, bin, nil, "env", "GOPROXY"))
		goCommand(ctx, bin, []string{"GOBIN=" + bin, "GOPROXY=" + proxy.URL + "," + others, "GONOSUMDB=github.com/kube-relapse",
			"GOFLAGS=-modcacherw", "CGO_ENABLED=0"}, "install", "github.com/kube-relapse/relapse/harness/cmd/relapse@"+version)
		installed = filepath.Join(bin, "relapse")
	}, NodeTimeout(30*time.Minute))

	DescribeTable("works in an empty folder for a user who has nothing", func(ctx SpecContext, want string, args ...string) {
		empty, err := os.MkdirTemp("", "relapse-empty-")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error { return os.RemoveAll(empty) })
		Expect(os.Chown(empty, 65534, 65534)).To(Succeed())
		cmd := osexec.CommandContext(ctx, installed, args...)
		cmd.Dir = empty
		cmd.Env = []string{"HOME=" + empty, "TMPDIR=" + empty} // and no PATH
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", out)
		Expect(string(out)).To(ContainSubstring(want))
	},
		Entry("version", "v0.0.1-commit.", "version"),
		Entry("list", "pleg-deadlock", "list"),
		Entry("explain", "Candidates with a known answer", "explain", "pleg-deadlock"),
		Entry("plan", "k8s.io/kubernetes/cmd/kube-apiserver of k8s.io/kubernetes@", "plan", "apiserver-goroutine-leak"),
		Entry("schema", "relapse scenario", "schema"),
	)
})

// The program is for other platforms, too: they can't make clusters, and can read evidence.
var _ = DescribeTable("The program compiles", Label("nightly"), func(ctx SpecContext, goos, goarch string) {
	goCommand(ctx, root, []string{"GOOS=" + goos, "GOARCH=" + goarch, "CGO_ENABLED=0"}, "build", "-o", os.DevNull, "./harness/cmd/relapse")
},
	Entry("for Linux", SpecTimeout(30*time.Minute), "linux", "amd64"),
	Entry("for Linux on arm64", SpecTimeout(30*time.Minute), "linux", "arm64"),
	Entry("for macOS on amd64", SpecTimeout(30*time.Minute), "darwin", "amd64"),
	Entry("for macOS", SpecTimeout(30*time.Minute), "darwin", "arm64"))

// moduleProxy returns a folder that is a module proxy for the commit that is checked out.
func moduleProxy(ctx SpecContext, version string) string {
	GinkgoHelper()
	mod := module.Version{Path: "github.com/kube-relapse/relapse", Version: version}
	dir := filepath.Join(scratch, "proxy")
	at := filepath.Join(dir, mod.Path, "@v")
	Expect(os.MkdirAll(at, 0o755)).To(Succeed())
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Now().UTC()})
	Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	Expect(err).NotTo(HaveOccurred())
	for name, content := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": text} {
		Expect(os.WriteFile(filepath.Join(at, name), content, 0o644)).To(Succeed())
	}
	archive, err := os.Create(filepath.Join(at, version+".zip"))
	Expect(err).NotTo(HaveOccurred())
	Expect(zip.CreateFromVCS(archive, mod, root, "HEAD", "")).To(Succeed())
	Expect(archive.Close()).To(Succeed())
	return dir
}

// gitCommand runs a command of git's in the checkout, and returns what it printed.
func gitCommand(ctx SpecContext, args ...string) string {
	GinkgoHelper()
	said, err := osexec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "git %s: %s", strings.Join(args, " "), said)
	return string(said)
}

// goCommand runs a command of Go's in a folder, and returns what it printed.
func goCommand(ctx SpecContext, dir string, env []string, args ...string) string {
	GinkgoHelper()
	cmd := osexec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	said, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "go %s: %s", strings.Join(args, " "), said)
	return string(said)
}
