package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Write writes all reports and the trials' charts to dir. Each file is written whole or not at all, verdict.json last.
func Write(dir string, v Verdict) error {
	var x, m, short bytes.Buffer
	if err := JUnit(&x, v); err != nil {
		return err
	}
	if err := Markdown(&m, v); err != nil {
		return err
	}
	if err := Summary(&short, v); err != nil {
		return err
	}
	j, err := v.JSON()
	if err != nil {
		return err
	}
	type file struct {
		name string
		data []byte
	}
	var files []file
	for _, t := range v.Trials {
		if len(t.Figures) == 0 {
			continue
		}
		c, err := chart(t.Figures, t.Clocks)
		if err != nil {
			return err
		}
		files = append(files, file{chartFile(v, t), c})
	}
	page, err := Page(v)
	if err != nil {
		return err
	}
	for _, f := range append(files, file{PageFile, page}, file{JUnitFile, x.Bytes()}, file{ReportFile, m.Bytes()},
		file{SummaryFile, short.Bytes()}, file{VerdictFile, j}) {
		if err := renameio.WriteFile(filepath.Join(dir, f.name), f.data, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", f.name, err)
		}
	}
	return nil
}

// Latest makes the link "latest" point at run, atomically. The link lies next to the directory of the run. Latest
// replaces nothing but a link.
func Latest(run string) error {
	link := filepath.Join(filepath.Dir(filepath.Clean(run)), "latest")
	if info, err := os.Lstat(link); err == nil && info.Mode()&os.ModeSymlink == 0 {
		return fmt.Errorf("linking %s: it exists and is no link", link)
	}
	if err := renameio.Symlink(filepath.Base(filepath.Clean(run)), link); err != nil {
		return fmt.Errorf("linking %s: %w", link, err)
	}
	return nil
}
