package processes

import (
	"os"
	"path/filepath"
)

// folder returns the folder of a component's own files.
func folder(home, component string) string { return filepath.Join(home, "files", component) }

// writeOwn makes the folder of a component's own files, and in it those files that have a text.
func writeOwn(folder string, files map[string]string) error {
	if len(files) == 0 {
		return nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for name, text := range files {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
