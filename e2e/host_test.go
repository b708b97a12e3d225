//go:build cluster

package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// kindLabel is the label that kind puts on a cluster's containers. Its value is the cluster's name.
const kindLabel = "io.x-k8s.kind.cluster"

// host lists what a run must leave as it was before.
type host struct{ containers, networks, volumes, mounts []string }

// look lists the host's containers, networks, volumes and mounts. Clusters of other processes come and go meanwhile,
// also those of specs that run at the same time. Their containers and networks carry a cluster's name, and look
// leaves them out unless mine says that the name belongs to this run. Everything without such a name counts.
func look(ctx context.Context, mine func(cluster string) bool) (h host, err error) {
	others := map[string]bool{}
	all, err := docker(ctx, "ps", "--all", "--no-trunc", "--format", `{{.ID}} {{.Names}} {{.Label "`+kindLabel+`"}}`)
	if err != nil {
		return h, err
	}
	for _, line := range all {
		if f := strings.Fields(line); len(f) == 3 && !mine(f[2]) {
			others[f[2]] = true
			continue
		}
		h.containers = append(h.containers, line)
	}
	networks, err := docker(ctx, "network", "ls", "--format", "{{.Name}}")
	if err != nil {
		return h, err
	}
	for _, n := range networks {
		if !others[n] && (mine(n) || !strings.HasPrefix(n, "relapse-")) { // a cluster's network exists before its containers
			h.networks = append(h.networks, n)
		}
	}
	if h.volumes, err = docker(ctx, "volume", "ls", "--filter", "dangling=true", "--format", "{{.Name}}"); err != nil {
		return h, err
	}
	h.mounts, err = mounts(ctx)
	return h, err
}

// mounts lists the mount points outside the engine's root directory. Those inside belong to containers, which look
// lists.
func mounts(ctx context.Context) ([]string, error) {
	engine, err := docker(ctx, "info", "--format", "{{.DockerRootDir}}")
	if err != nil {
		return nil, err
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) > 4 && !strings.HasPrefix(f[4], engine[0]+"/") && !strings.HasPrefix(f[4], "/run/docker/") && !strings.HasPrefix(f[4], "/var/run/docker/") {
			out = append(out, f[4])
		}
	}
	slices.Sort(out)
	return out, nil
}

// docker runs the engine's client and returns the lines that it prints, sorted.
func docker(ctx context.Context, args ...string) ([]string, error) {
	var out, errs bytes.Buffer
	cmd := osexec.CommandContext(ctx, "docker", args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	lines := strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	return lines, nil
}

// more lists what is in h and wasn't in before.
func (h host) more(before host) []string {
	var out []string
	for what, pair := range map[string][2][]string{
		"container": {before.containers, h.containers}, "network": {before.networks, h.networks},
		"volume": {before.volumes, h.volumes}, "mount": {before.mounts, h.mounts},
	} {
		for _, one := range pair[1] {
			if !slices.Contains(pair[0], one) {
				out = append(out, what+" "+one)
			}
		}
	}
	slices.Sort(out)
	return out
}

// offspring lists the processes that have mark in their environment: a run's own process and all that it started on
// the host, orphans included.
func offspring(mark string) ([]string, error) {
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range procs {
		env, err := os.ReadFile(filepath.Join(p, "environ"))
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), mark) { // ended, or no environment
			continue
		}
		cmd, err := os.ReadFile(filepath.Join(p, "cmdline"))
		if err == nil && len(cmd) > 0 { // a zombie has no command line
			out = append(out, filepath.Base(p)+" "+strings.ReplaceAll(string(cmd), "\x00", " "))
		}
	}
	return out, nil
}

// tree maps every file below dir to its content. A folder that doesn't exist is empty.
func tree(dir string) map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			out[path], err = os.Readlink(path)
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = string(b)
		return err
	})
	Expect(err).NotTo(HaveOccurred())
	return out
}

// names returns the paths of a tree, sorted.
func names(t map[string]string) []string { return slices.Sorted(maps.Keys(t)) }
