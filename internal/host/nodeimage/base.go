package nodeimage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Labels of what is made here. labelBuild is on containers in the making: its value is the key of the image that they
// become. A commit copies a container's labels to the image, and so to every node started from it. So the commit
// empties labelBuild, and Clean goes by the container's name as well.
const (
	labelCache   = "dev.relapse.cache" // always cacheNodeImage
	labelLayer   = "dev.relapse.node-image"
	labelKey     = "dev.relapse.key"
	labelVersion = "dev.relapse.version"
	labelBuild   = "dev.relapse.build"
	labelStore   = "dev.relapse.store" // the id of the Store that makes the container

	cacheNodeImage = "node-image"
	layerBase      = "base"
	layerNode      = "node"

	baseRepository = "relapse/node-base"
	nodeRepository = "relapse/node"
)

// base is a base image and the key it is addressed by.
type base struct {
	ref, id, key string
	userland     string // tar of the programs that kube-proxy's image needs
	kindVersion  string
}

// Base returns the engine's id of the base image (Debian, kind's files, containerd; no Kubernetes), and makes the image
// if it isn't cached. Only that needs root, debootstrap and a Debian mirror. Base may run while the component binaries
// are still being built.
func (s *Store) Base(ctx context.Context) (string, error) {
	b, err := s.base(ctx)
	return b.id, err
}

func (s *Store) base(ctx context.Context) (base, error) {
	files, kindVersion, err := kindFiles(ctx)
	if err != nil {
		return base{}, err
	}
	key, err := baseKey(files, s.arch)
	if err != nil {
		return base{}, err
	}
	b := base{
		ref: baseRepository + ":" + short(key), key: key, kindVersion: kindVersion,
		userland: filepath.Join(s.dir, "userland-"+key+".tar"),
	}
	unlock, err := s.lock(ctx, key)
	if err != nil {
		return base{}, err
	}
	defer unlock()
	id, there, err := s.imageID(ctx, b.ref)
	if err != nil {
		return base{}, err
	}
	if _, err := os.Stat(b.userland); err == nil && there {
		b.id = id
		return b, nil
	}
	if err := s.makeBase(ctx, b, files); err != nil {
		return base{}, fmt.Errorf("assembling the base image: %w", err)
	}
	if b.id, there, err = s.imageID(ctx, b.ref); err == nil && !there {
		err = fmt.Errorf("the engine doesn't know %s after its import", b.ref)
	}
	return b, err
}

// makeBase makes the base image: it bootstraps a root, furnishes it and imports it. The caller holds the lock.
func (s *Store) makeBase(ctx context.Context, b base, files string) (err error) {
	started := time.Now()
	if os.Geteuid() != 0 {
		return errors.New("debootstrap needs root: run as root once, or give a node image by reference")
	}
	if _, err := exec.LookPath("debootstrap"); err != nil {
		return errors.New("no debootstrap on PATH: install it (on Debian: `apt-get install -y debootstrap`)")
	}
	if err := s.discard(ctx, b.key); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.discard(context.WithoutCancel(ctx), b.key)) }()
	scratch, err := s.scratch(b.key)
	if err != nil {
		return err
	}
	mirror, err := s.mirror(ctx, suite)
	if err != nil {
		return err
	}
	root := filepath.Join(scratch, "root")
	s.say(fmt.Sprintf("bootstrapping Debian %s from %s", suite, mirror))
	if err := bootstrap(ctx, root, mirror); err != nil {
		return err
	}
	s.say(
		fmt.Sprintf(
			"bootstrapped in %s; furnishing the node's root",
			time.Since(started).Round(time.Second),
		),
	)
	if err := furnish(ctx, root, files); err != nil {
		return err
	}
	if err := writeUserland(root, b.userland); err != nil {
		return err
	}
	if err := s.importRoot(ctx, root, b); err != nil {
		return err
	}
	s.say(fmt.Sprintf("base image %s made in %s", b.ref, time.Since(started).Round(time.Second)))
	return nil
}

// dpkgOptions are in force while debootstrap unpacks: nothing is synced (a
// killed bootstrap is thrown away), and pages that no node shows are left out.
const dpkgOptions = `force-unsafe-io
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
`

const dpkgOptionsFile = "etc/dpkg/dpkg.cfg.d/90-relapse"

// bootstrap runs debootstrap in separate namespaces. What debootstrap starts and mounts there ends with it, however it
// ends.
func bootstrap(ctx context.Context, root, mirror string) error {
	options := filepath.Join(root, dpkgOptionsFile)
	if err := os.MkdirAll(filepath.Dir(options), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(options, []byte(dpkgOptions), 0o644); err != nil {
		return err
	}
	// A parent-death signal comes when the thread that forked ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "debootstrap", "--variant=minbase",
		"--include="+strings.Join(packages, ","), suite, root, mirror)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	cmd.SysProcAttr = isolated()
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf(
			"running `%s`: %w: %s",
			strings.Join(cmd.Args, " "),
			err,
			lastLines(output.String(), 12),
		)
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// importRoot makes the base image of the root, which the engine imports as one layer. The import can't set a stop
// signal (systemd wants its own), but a build can. The tag that counts is set last.
func (s *Store) importRoot(ctx context.Context, root string, b base) error {
	raw := s.rawRef(b.key)
	tar := exec.CommandContext(ctx, "tar", "--numeric-owner", "--one-file-system", "-C", root, "-c", ".")
	var complaints bytes.Buffer
	tar.Stderr = &complaints
	stream, err := tar.StdoutPipe()
	if err != nil {
		return err
	}
	if err := tar.Start(); err != nil {
		return fmt.Errorf("archiving the root: %w", err)
	}
	importErr := s.engine.Stream(ctx, stream, nil, "import", "-", raw)
	_, _ = io.Copy(io.Discard, stream) // or tar would never end if the import ended early
	if err := tar.Wait(); err != nil && importErr == nil {
		return fmt.Errorf("archiving the root: %w: %s", err, lastLines(complaints.String(), 5))
	}
	if importErr != nil {
		return importErr
	}
	dockerfile := strings.Join([]string{
		"FROM " + raw,
		"ENV container=docker",
		"STOPSIGNAL SIGRTMIN+3",
		fmt.Sprintf(
			"LABEL %s=%s %s=%s %s=%s",
			labelCache,
			cacheNodeImage,
			labelLayer,
			layerBase,
			labelKey,
			b.key,
		),
		`ENTRYPOINT [ "/usr/local/bin/entrypoint", "/sbin/init" ]`,
	}, "\n")
	return s.engine.Stream(ctx, strings.NewReader(dockerfile), nil, "build", "--tag", b.ref, "-")
}

// rawRef returns the reference of the import that a base image is built from; discard removes it.
func (s *Store) rawRef(key string) string {
	return baseRepository + ":" + short(key) + "-" + s.id + "-raw"
}
