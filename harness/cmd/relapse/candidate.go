package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/kube-relapse/relapse/harness/scenario"
)

var version3 = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

// candidateSource is what the user gave as --candidate.
func candidateSource(given string) (*scenario.Source, error) {
	if version3.MatchString(given) {
		return &scenario.Source{Version: given}, nil
	}
	path, err := filepath.Abs(given)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, usage(fmt.Errorf("--candidate %s: %w", given, err), "give an executable, a checkout's folder or a version such as v1.34.7")
	case info.IsDir():
		return &scenario.Source{Dir: path}, nil
	case info.Mode()&0o111 == 0:
		return nil, usage(fmt.Errorf("--candidate %s is not executable", given), "chmod +x "+given)
	}
	return &scenario.Source{Binary: path}, nil
}
