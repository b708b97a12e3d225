package build

import (
	"debug/elf"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// stamps returns the linker flags that set the version of Kubernetes programs; kubeadm refuses to work without one. The
// flags are the same for all arms of a version; the binary's digest tells the arms apart.
func stamps(src Source) []string {
	v, err := semver.ParseTolerant(src.Version)
	if src.Module != kubernetes || err != nil {
		return nil
	}
	var out []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, s := range []struct{ name, value string }{
			{"gitVersion", "v" + v.String()}, {"gitMajor", fmt.Sprint(v.Major)}, {"gitMinor", fmt.Sprint(v.Minor)},
			{"gitTreeState", "archive"},
		} {
			out = append(out, fmt.Sprintf("-X %s.%s=%s", pkg, s.name, s.value))
		}
	}
	return out
}

// stamped is the end of the name of the variable that `--version` and kubeadm read. Older versions have it in a package
// with another path.
const stamped = "/version.gitVersion"

// checkStamp refuses a Kubernetes program that doesn't contain the version that it was stamped with. The linker doesn't
// complain about a flag for a missing variable, so checkStamp looks into the program file. The program need not run on
// this machine.
func checkStamp(src Source, file string) error {
	if len(stamps(src)) == 0 {
		return nil
	}
	v, err := semver.ParseTolerant(src.Version)
	if err != nil {
		return fmt.Errorf("parsing version %q of %s: %w", src.Version, src.Module, err)
	}
	found, err := stringVariables(file, stamped)
	if err != nil {
		return fmt.Errorf("looking for the version in %s: %w", file, err)
	}
	if len(found) == 0 {
		return fmt.Errorf("%s has no variable *%s to hold its version", file, stamped)
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if want := "v" + v.String(); found[name] != want {
			return fmt.Errorf(
				"%s says in %s that it is version %q, want %q",
				file,
				name,
				found[name],
				want,
			)
		}
	}
	return nil
}

// stringVariables returns the initial values of a program's string variables whose names end in suffix. The program
// must have symbols.
func stringVariables(file, suffix string) (map[string]string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return nil, err
	}
	const pointer = 8 // all targets of Go that run nodes have 64 bits
	out := map[string]string{}
	for _, s := range symbols {
		if !strings.HasSuffix(s.Name, suffix) || s.Size != 2*pointer {
			continue
		}
		header := make([]byte, s.Size)
		if err := readMemory(f, s.Value, header); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		value := make([]byte, min(f.ByteOrder.Uint64(header[pointer:]), 1<<10))
		if err := readMemory(f, f.ByteOrder.Uint64(header), value); err != nil {
			return nil, fmt.Errorf("the value of %s: %w", s.Name, err)
		}
		out[s.Name] = string(value)
	}
	return out, nil
}

// readMemory fills p with the program's initial memory at an address.
func readMemory(f *elf.File, address uint64, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	for _, seg := range f.Progs {
		if seg.Type == elf.PT_LOAD && address >= seg.Vaddr && address+uint64(len(p)) <= seg.Vaddr+seg.Memsz {
			_, err := seg.ReadAt(p, int64(address-seg.Vaddr))
			if err == io.EOF { // memory beyond the file's content is zero
				err = nil
			}
			return err
		}
	}
	return fmt.Errorf("no segment at address %#x", address)
}
