package cluster

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseStat sets StartTicks, ArgStart, Stopped and the CPU times from stat, the content of /proc/PID/stat. It leaves
// PID, Restarts and SHA256 as they are.
func (id *Identity) ParseStat(stat string) error {
	// Field 2 is the command in parentheses and may hold spaces and parentheses; fields[0] is field 3.
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if !strings.Contains(stat, ")") || len(fields) < 20 {
		return fmt.Errorf("/proc/PID/stat is %q", stat)
	}
	number := func(field int) (n int64, err error) {
		if n, err = strconv.ParseInt(fields[field-3], 10, 64); err != nil {
			return 0, fmt.Errorf("field %d of /proc/PID/stat: %w", field, err)
		}
		return n, nil
	}
	var err error
	if id.StartTicks, err = number(22); err != nil {
		return err
	}
	id.CPUTicks, id.ChildTicks, id.Stopped = 0, 0, fields[0] == "T"
	for i, of := range []*int64{&id.CPUTicks, &id.CPUTicks, &id.ChildTicks, &id.ChildTicks} {
		ticks, err := number(14 + i)
		if err != nil {
			return err
		}
		*of += ticks
	}
	if len(fields) > 48-3 { // a kernel may not have field 48
		id.ArgStart, err = strconv.ParseUint(fields[48-3], 10, 64)
		if err != nil {
			return fmt.Errorf("field 48 of /proc/PID/stat: %w", err)
		}
	}
	return nil
}

// RandomizeFile has Linux's setting for which addresses are chosen at random. 0 means none; 1 and 2 include the stack,
// where a program's arguments lie.
const RandomizeFile = "/proc/sys/kernel/randomize_va_space"
