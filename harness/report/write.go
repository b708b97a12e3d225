package report

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/harness/judge"
)

// Write writes all reports and the trials' charts to dir, each file whole or not at all. verdict.json is not among them:
// judge.Write writes it afterwards.
func Write(dir string, v judge.Verdict) error {
	var x, m, short bytes.Buffer
	trials := Read(v)
	if err := JUnit(&x, v); err != nil {
		return err
	}
	if err := Markdown(&m, v, trials); err != nil {
		return err
	}
	if err := Summary(&short, v); err != nil {
		return err
	}
	type file struct {
		name string
		data []byte
	}
	var files []file
	for _, t := range trials {
		if len(t.Figures) == 0 {
			continue
		}
		c, err := chart(t.Figures, t.Clocks)
		if err != nil {
			return err
		}
		files = append(files, file{chartFile(v, t), c})
	}
	page, err := Page(v, trials)
	if err != nil {
		return err
	}
	for _, f := range append(files, file{PageFile, page}, file{JUnitFile, x.Bytes()}, file{ReportFile, m.Bytes()},
		file{SummaryFile, short.Bytes()}) {
		if err := renameio.WriteFile(filepath.Join(dir, f.name), f.data, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", f.name, err)
		}
	}
	return nil
}
