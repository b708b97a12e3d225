package build

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// Program describes an executable file, by what the file says about itself.
type Program struct {
	Arch    string // Go's name, such as amd64; the ELF machine's if Go has none
	Loader  string // the dynamic linker that it needs; "" for a static program
	Main    string // import path of its main package; "" if not recorded
	Go      string // the Go version that built it; "" for other compilers
	Version string // of a Kubernetes program, vX.Y.Z…; "" if unknown
	Doubt   string // why the version is unknown
}

// versionTime limits how long a program may take to print its version, because a faulty one may hang.
const versionTime = 10 * time.Second

// Inspect reads an executable and refuses one that can't run as the subject on a node of this machine: a file that
// isn't ELF, another architecture or program, and a dynamically linked program where there are no libraries. A program
// says what it is: Go records its main package. Where that is missing, a Kubernetes subject has to be told by its answer
// to --version, with which Inspect runs it once. If that fails, the version is unknown.
func Inspect(ctx context.Context, file, subject string) (Program, error) {
	p, err := readProgram(file)
	if err != nil {
		return p, err
	}
	if p.Arch != runtime.GOARCH {
		return p, fmt.Errorf(
			"%s is for %s: want %s, as the nodes are",
			file,
			p.Arch,
			runtime.GOARCH,
		)
	}
	if p.Main != "" && p.Main != unnamed && programName(p.Main) != subject {
		return p, fmt.Errorf(
			"%s is the program %s (%s): want a %s",
			file,
			programName(p.Main),
			p.Main,
			subject,
		)
	}
	// A node has Debian's C library; the image of a control plane component has none.
	row, _ := component.Of(subject)
	if p.Loader != "" && row.Runs != component.AsService {
		return p, fmt.Errorf(
			"%s is dynamically linked (%s), and there is nothing to link it with where a %s runs: "+
				"want one built with CGO_ENABLED=0",
			file,
			p.Loader,
			subject,
		)
	}
	if !row.Kubernetes {
		if p.Go == "" {
			return p, fmt.Errorf(
				"%s doesn't say that it is a %s: it %s",
				file,
				subject,
				compiler(p),
			)
		}
		return p, nil
	}
	said, err := askVersion(ctx, file)
	if (p.Main == "" || p.Main == unnamed) && (p.Go == "" || err != nil || !strings.Contains(said, "Kubernetes")) {
		return p, fmt.Errorf("%s doesn't say that it is a %s: it %s, and %s", file, subject, compiler(p), answered(said, err))
	}
	p.Version, p.Doubt = versionOf(file, said, err)
	return p, nil
}

// unnamed stands for the main package of a program that was built of files rather than of a package.
const unnamed = "command-line-arguments"

// compiler says what built a program that doesn't name its main package.
func compiler(p Program) string {
	if p.Go == "" {
		return "was not built by Go"
	}
	return "was built by " + p.Go + " without the name of its main package"
}

// readProgram reads the file's ELF headers and Go build information.
func readProgram(file string) (Program, error) {
	f, err := elf.Open(file)
	var format *elf.FormatError
	if errors.As(err, &format) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return Program{}, fmt.Errorf(
			"%s is %s: want a Linux executable for %s",
			file,
			otherwise(file),
			runtime.GOARCH,
		)
	}
	if err != nil {
		return Program{}, fmt.Errorf("reading the executable %s: %w", file, err)
	}
	defer f.Close()
	p := Program{Arch: archOf(f.FileHeader)}
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return p, fmt.Errorf("%s is an ELF file of type %s: want an executable", file, f.Type)
	}
	for _, seg := range f.Progs {
		if seg.Type != elf.PT_INTERP {
			continue
		}
		name := make([]byte, min(seg.Filesz, 256))
		if _, err := seg.ReadAt(name, 0); err != nil {
			return p, fmt.Errorf("reading the dynamic linker of %s: %w", file, err)
		}
		p.Loader = string(bytes.TrimRight(name, "\x00"))
	}
	if info, err := buildinfo.ReadFile(file); err == nil { // other compilers leave none
		p.Go, p.Main = info.GoVersion, info.Path
	}
	return p, nil
}

func archOf(h elf.FileHeader) string {
	switch {
	case h.Machine == elf.EM_X86_64 && h.Class == elf.ELFCLASS64:
		return "amd64"
	case h.Machine == elf.EM_AARCH64:
		return "arm64"
	}
	return strings.ToLower(strings.TrimPrefix(h.Machine.String(), "EM_"))
}

// otherwise describes a file that isn't ELF, by its first bytes.
func otherwise(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return "unreadable"
	}
	defer f.Close()
	head := make([]byte, 4)
	n, _ := f.Read(head) // an empty file begins with nothing
	switch head = head[:n]; {
	case n == 0:
		return "empty"
	case bytes.HasPrefix(head, []byte("#!")):
		return "a script"
	case bytes.HasPrefix(head, []byte("MZ")):
		return "a Windows executable"
	case bytes.Equal(head, []byte{0xcf, 0xfa, 0xed, 0xfe}), bytes.Equal(head, []byte{0xca, 0xfe, 0xba, 0xbe}):
		return "a macOS executable"
	}
	return "no executable"
}

var printedVersion = regexp.MustCompile(`\bv[0-9]+\.[0-9]+\.[0-9]+[-+.0-9A-Za-z]*`)

// askVersion returns what a program prints when it is asked for its version.
func askVersion(ctx context.Context, file string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, file, "--version")
	cmd.WaitDelay = time.Second
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Dir = os.TempDir()
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// answered puts a program's answer to --version into words.
func answered(said string, err error) string {
	if err != nil {
		return fmt.Sprintf("asking for its --version: %v", err)
	}
	said, _, _ = strings.Cut(said, "\n")
	return fmt.Sprintf("asked for its --version it printed %q", clip(said))
}

// versionOf returns the version in a program's answer to --version. If there is none, it looks for the version stamp in
// the file.
func versionOf(file, said string, err error) (version, doubt string) {
	if v := printedVersion.FindString(said); err == nil && v != "" {
		return stampOf(v)
	}
	doubt = answered(said, err)
	found, err := stringVariables(file, stamped)
	if err != nil { // the file is stripped, for example
		return "", doubt
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if v := printedVersion.FindString(found[name]); v != "" {
			return stampOf(v)
		}
	}
	return "", doubt
}

// stampOf returns a version, or a doubt if it is only the placeholder of a build without a stamp.
func stampOf(v string) (version, doubt string) {
	if strings.HasPrefix(v, "v0.0.0") {
		return "", "it says that it is " + v + ", which is no version of Kubernetes"
	}
	return v, ""
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
