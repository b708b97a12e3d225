package collectors_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever happens to the files, every line comes once: growth, rotation, compression, a restart, a removal of what was
// read, and commands that fail while all that goes on.
func TestLogsLoseAndDoubleNothing(t *testing.T) {
	n := newLogNode(t)
	n.steps = []func() error{
		func() error { return n.add("0.log", 0, 10) },
		func() error { return nil },
		func() error { return n.add("0.log", 10, 20) },
		// A rotation with lines on both sides that were not seen yet.
		func() error {
			return errors.Join(n.add("0.log", 20, 25), n.rename("0.log", "0.log.1"), n.add("0.log", 25, 30))
		},
		// The next, with the old one compressed, and lines that came to it late, and a file that the kubelet has only begun
		// to write.
		func() error {
			return errors.Join(n.compress("0.log.1"), n.add("0.log", 30, 35), n.rename("0.log", "0.log.2"), n.put("0.log", ""),
				n.put("0.log.2.tmp", "\x1f\x8b"))
		},
		func() error { return errors.Join(n.add("0.log", 35, 40), n.remove("0.log.2.tmp")) },
		// Two of them while no command runs, so that a file is seen again only when it is compressed.
		func() error {
			return errors.Join(n.add("0.log", 40, 45), n.rename("0.log", "0.log.3"), n.compress("0.log.2"), errBusy)
		},
		func() error { return errors.Join(n.add("0.log", 45, 48), n.compress("0.log.3"), errBusy) },
		func() error { return n.add("0.log", 48, 50) },
		// A restart, and then the first container's files go.
		func() error { return errors.Join(n.add("0.log", 50, 55), n.add("1.log", 55, 60)) },
		func() error {
			return errors.Join(n.remove("0.log"), n.remove("0.log.1.gz"), n.remove("0.log.2.gz"), n.remove("0.log.3.gz"),
				n.add("1.log", 60, 65))
		},
		func() error { return n.add("1.log", 65, 70) },
		func() error { return nil },
	}
	began := time.Now()
	a, lines := n.collect(often)
	numbered(t, a, lines, 0, 70)
	dir := "kube-system_kube-apiserver-cp_0a1b/kube-apiserver/"
	if lines[54].File != dir+"0.log" || lines[55].File != dir+"1.log" {
		t.Errorf("the lines about the restart are of %s and %s", lines[54].File, lines[55].File)
	}
	if !a.Coverage.First.Equal(t0.Add(time.Nanosecond)) || a.Coverage.Last.Before(began) {
		t.Errorf("it covers %+v, want it from the first line to the last look", a.Coverage)
	}
}

// Parts of a line are joined, of each output by itself and across files; what isn't a line of the runtime's is kept as
// it is.
func TestLogsOfParts(t *testing.T) {
	n := newLogNode(t)
	n.steps = []func() error{
		func() error {
			return n.put("0.log", cri(0, "stderr P one,\n")+cri(1, "stdout F other\n")+cri(2, "stderr P two,\n")+"\x00\x00\n"+
				cri(3, "stderr F \n"))
		},
		func() error { return n.put("0.log", cri(4, "stderr P:x thr")) },
		func() error { return n.put("0.log", "ee,\n") },
		func() error {
			return errors.Join(n.rename("0.log", "0.log.1"), n.put("0.log", cri(5, "stderr F:x four\n")))
		},
		func() error { return n.put("0.log", cri(6, "stdout F no newline")) },
		func() error { return n.put("1.log", cri(7, "stderr P cut")+"\n") },
	}
	_, lines := n.collect(often)
	var got []string
	for _, l := range lines {
		got = append(got, fmt.Sprintf("%s %d %q", filepath.Base(l.File), l.Time.Sub(t0).Milliseconds(), l.Text))
	}
	want := []string{`0.log 1 "other"`, `0.log 2 "\x00\x00"`, `0.log 0 "one,two,"`, `0.log 4 "three,four"`,
		`0.log 6 "no newline"`, `1.log 7 "cut"`}
	if !slices.Equal(got, want) {
		t.Errorf("it recorded\n%q, want\n%q", got, want)
	}
}

// A file that takes another's place under its name and its inode is another file.
func TestLogsInAnOldPlace(t *testing.T) {
	n := newLogNode(t)
	n.steps = []func() error{
		func() error { return n.add("0.log", 0, 10) },
		func() error {
			b, err := os.ReadFile(n.path("0.log"))
			return errors.Join(err, os.WriteFile(n.path("0.log.1"), b, 0o640), os.Truncate(n.path("0.log"), 0),
				n.add("0.log", 10, 40))
		},
	}
	a, lines := n.collect(often)
	numbered(t, a, lines, 0, 40)
}

// A backlog of more than one look takes in comes at once, in order, and not at the next tick.
func TestLogsKeepUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newLogNode(t)
		n.pad = strings.Repeat(".", 4000)
		const each = 800 // lines: 3.2 MB
		n.steps = []func() error{
			func() error {
				return errors.Join(n.add("0.log.1", 0, each), n.compress("0.log.1"), n.add("0.log.2", each, 2*each),
					n.add("0.log", 2*each, 3*each))
			},
			func() error { return nil }, func() error { return nil },
		}
		began := time.Now()
		a, lines := n.collect(`{"components":["kube-apiserver"],"interval":"1h"}`)
		numbered(t, a, lines, 0, 3*each)
		if len(n.steps) > 0 || time.Since(began) != time.Hour { // the tick after all was read ends it
			t.Errorf("%d looks were left, and it took %s", len(n.steps), time.Since(began))
		}
	})
}

// The files change while they are looked at.
func TestLogsInARace(t *testing.T) {
	n := newLogNode(t)
	const looks = 8
	rnd := rand.New(rand.NewPCG(1, 2))
	written, rotated := 0, 0
	var busy sync.WaitGroup
	change := func() {
		for range 12 {
			var err error
			switch more := rnd.IntN(40); {
			case rnd.IntN(6) > 0:
				err = n.add("0.log", written, written+more)
				written += more
			case written > 0:
				rotated++
				err = n.rename("0.log", fmt.Sprintf("0.log.%d", rotated))
				if before := fmt.Sprintf("0.log.%d", rotated-1); rotated > 1 && err == nil {
					err = n.compress(before)
				}
				err = errors.Join(err, n.add("0.log", written, written+1))
				written++
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	for range looks {
		n.steps = append(n.steps, func() error {
			busy.Wait()
			busy.Go(change)
			return nil
		})
	}
	n.steps = append(n.steps, func() error { busy.Wait(); return nil }, func() error { return nil },
		func() error { return nil })
	a, lines := n.collect(often)
	numbered(t, a, lines, 0, written)
	if rotated < 10 || written < 1000 {
		t.Errorf("only %d rotations of %d lines: that was no race", rotated, written)
	}
}

// A rotation between the listing of the files and their reading: nothing of the new file is taken for the old one's, or
// read before that.
func TestLogsRotatedInBetween(t *testing.T) {
	n := newLogNode(t)
	n.programs = t.TempDir()
	real, err := exec.LookPath("sort")
	if err != nil {
		t.Fatal(err)
	}
	// The script sorts what it listed, and then reads: once, the rotation comes with the sorting.
	script := fmt.Sprintf("#!/bin/sh\nall=$(%s \"$@\")\nif cd %s && [ -e next ]; then mv 0.log 0.log.1; mv next 0.log; fi\necho \"$all\"\n",
		real, filepath.Dir(n.path("0.log")))
	if err := os.WriteFile(filepath.Join(n.programs, "sort"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	n.steps = []func() error{
		func() error { return errors.Join(n.add("0.log", 0, 10)) },
		func() error {
			return errors.Join(n.add("0.log", 10, 20), n.add("1.log", 40, 50), n.add("next", 20, 40))
		},
		func() error { return nil }, func() error { return nil },
	}
	a, lines := n.collect(often)
	numbered(t, a, lines, 0, 50)
	if _, err := os.Stat(n.path("0.log.1")); err != nil {
		t.Errorf("it was not rotated: %v", err)
	}
}
