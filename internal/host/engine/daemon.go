package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// daemon is a running dockerd, as /proc shows it.
type daemon struct {
	pid        int
	configFile string // its daemon.json, which may not exist
}

// findDaemon returns the dockerd that runs, according to proc. If several run, it returns the one that pidfile names.
// It refuses a dockerd whose command line already sets what the settings file would: dockerd rejects a setting that
// comes from both.
func findDaemon(proc, pidfile string) (daemon, error) {
	pids, err := dockerds(proc)
	if err != nil {
		return daemon{}, err
	}
	if len(pids) > 1 {
		data, err := os.ReadFile(pidfile)
		if err != nil {
			return daemon{}, fmt.Errorf("choosing among dockerd processes %v: %w", pids, err)
		}
		named, _ := strconv.Atoi(strings.TrimSpace(string(data)))
		for _, pid := range pids {
			if pid == named {
				return readDaemon(proc, pid)
			}
		}
		return daemon{}, fmt.Errorf(
			"choosing among dockerd processes %v: %s names %d",
			pids,
			pidfile,
			named,
		)
	}
	if len(pids) == 0 {
		return daemon{}, errors.New("no dockerd process on this host: its settings can only be mended where it runs")
	}
	return readDaemon(proc, pids[0])
}

func dockerds(proc string) (pids []int, err error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, fmt.Errorf("looking for dockerd: %w", err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		comm, err := os.ReadFile(filepath.Join(proc, entry.Name(), "comm"))
		if err == nil && strings.TrimSpace(string(comm)) == "dockerd" {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func readDaemon(proc string, pid int) (daemon, error) {
	d := daemon{pid: pid, configFile: "/etc/docker/daemon.json"}
	path := filepath.Join(proc, strconv.Itoa(pid), "cmdline")
	line, err := os.ReadFile(path)
	if err != nil {
		return d, fmt.Errorf("reading %s: %w", path, err)
	}
	args := strings.Split(string(bytes.TrimRight(line, "\x00")), "\x00")
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		switch name {
		case "--config-file":
			d.configFile = value
		case "--add-runtime", "--default-runtime":
			return d, fmt.Errorf(
				"dockerd (process %d) is started with %s, which its settings file can't override: "+
					"take it off that command line, restart dockerd, and try again",
				pid,
				arg,
			)
		}
	}
	if !filepath.IsAbs(d.configFile) {
		return d, fmt.Errorf(
			"dockerd (process %d) reads its settings from %q, which isn't an absolute path",
			pid,
			d.configFile,
		)
	}
	real, err := filepath.EvalSymlinks(d.configFile) // a rename over a link would replace the link
	if err == nil {
		d.configFile = real
	} else if !errors.Is(err, fs.ErrNotExist) {
		return d, fmt.Errorf("reading %s: %w", d.configFile, err)
	}
	return d, nil
}
