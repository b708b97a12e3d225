//go:build !linux

package processes

import "errors"

// errNoGroups is why memory can't be limited.
var errNoGroups = errors.New("only Linux has cgroups")

func makeMemoryGroup(string, int64) error { return errNoGroups }

func openMemoryGroup(string) (memoryGroup, error) { return nil, errNoGroups }
