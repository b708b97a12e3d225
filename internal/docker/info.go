package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Info is what the daemon says about itself and its host.
type Info struct {
	Version         string   // "20.10.24"
	StorageDriver   string   // "overlay2"
	CgroupVersion   int      // 1 or 2; 0 if the daemon doesn't say
	RootDir         string   // where it keeps images and containers, on its host
	SecurityOptions []string // "name=seccomp,profile=default", "name=rootless", …
	Runtimes        []string // names, sorted
	DefaultRuntime  string   // "runc"
	Architecture    string   // as uname prints it: "x86_64", "aarch64"
	OS              string   // "Debian GNU/Linux 12 (bookworm)"
}

// ServerInfo returns what the daemon says about itself and its host. An answer without a version is an error: the
// client prints that, and exits with 0, when no daemon answers.
func (c *Client) ServerInfo(ctx context.Context) (Info, error) {
	out, err := c.Output(ctx, "info", "--format", "{{json .}}")
	if err != nil {
		return Info{}, err
	}
	return parseInfo(out)
}

func parseInfo(data []byte) (Info, error) {
	var raw struct {
		ServerVersion, Driver, CgroupVersion string
		DockerRootDir, DefaultRuntime        string
		Architecture, OperatingSystem        string
		SecurityOptions, ServerErrors        []string
		Runtimes                             map[string]any
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return Info{}, fmt.Errorf("parsing `docker info`: %w", err)
	}
	if raw.ServerVersion == "" {
		return Info{}, fmt.Errorf("%w: %v", ErrNoDaemon, raw.ServerErrors)
	}
	info := Info{
		Version: raw.ServerVersion, StorageDriver: raw.Driver, RootDir: raw.DockerRootDir,
		SecurityOptions: raw.SecurityOptions, DefaultRuntime: raw.DefaultRuntime,
		Architecture: raw.Architecture, OS: raw.OperatingSystem,
	}
	switch raw.CgroupVersion {
	case "1":
		info.CgroupVersion = 1
	case "2":
		info.CgroupVersion = 2
	}
	info.Runtimes = slices.Sorted(maps.Keys(raw.Runtimes))
	return info, nil
}
