package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"
)

// Programs are found by a key that has the Go version and the settings of the Go that built them. A host that imports
// programs may have another Go, or none. So the cache remembers what Go said of itself where they were built, and a
// builder can look for programs as that Go would.

// toolchainsFile is the file in the cache's folder that has the toolchains of imported programs, newest first.
const toolchainsFile = "toolchains.json"

// AddToolchain records in the folder of a cache which Go built the programs that were imported into it.
func AddToolchain(cache string, tc Toolchain) error {
	all, err := Toolchains(cache)
	if err != nil {
		return err
	}
	all = append([]Toolchain{tc}, slices.DeleteFunc(all, func(t Toolchain) bool { return t == tc })...)
	text, err := json.Marshal(all)
	if err == nil {
		err = renameio.WriteFile(filepath.Join(cache, toolchainsFile), append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("recording which Go built the imported programs: %w", err)
	}
	return nil
}

// Toolchains returns the toolchains of the programs that were imported into the folder of a cache, newest first.
func Toolchains(cache string) (all []Toolchain, err error) {
	if err := readJSON(filepath.Join(cache, toolchainsFile), &all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading which Go built the imported programs: %w", err)
	}
	return all, nil
}

// LookAs has the builder look for programs as the Go of an import would, and build none; nil has it use Go here.
func (b *Builder) LookAs(imported *Toolchain) { b.imported = imported }
