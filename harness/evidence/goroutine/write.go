package goroutine

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Write writes the group's stack in the form of its dump. If the group has several goroutines, a line before the stack
// lists them:
//
//	# 3 goroutines, waiting 2 to 5 minutes: 18 19 20
//	goroutine 18 [chan send, 5 minutes]:
//	k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).Relist(...)
//		/src/pkg/kubelet/pleg/generic.go:123
//
// Arguments and addresses are not kept, and so not written.
func (g Group) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	if g.State == "" {
		g.writeRecord(b)
		return b.Flush()
	}
	if g.Count > 1 {
		fmt.Fprintf(b, "# %d goroutines", g.Count)
		switch lo, hi := g.MinWait/time.Minute, g.MaxWait/time.Minute; {
		case hi > lo:
			fmt.Fprintf(b, ", waiting %d to %d minutes", lo, hi)
		case hi > 0:
			fmt.Fprintf(b, ", waiting %d minutes", hi)
		}
		for i, id := range g.IDs[:min(len(g.IDs), 20)] {
			fmt.Fprintf(b, "%s %d", map[bool]string{true: ":"}[i == 0], id)
		}
		if len(g.IDs) > 20 {
			b.WriteString(" ...")
		}
		b.WriteByte('\n')
	}
	g.writeStack(b, 0, g.MaxWait)
	return b.Flush()
}

// Write writes the whole dump, every goroutine of it, so that Read returns the same groups again. A group doesn't keep
// which of its goroutines waited how long: the first gets the longest wait, the others the shortest.
func (d *Dump) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	if d.Format == Profile {
		fmt.Fprintf(b, "goroutine profile: total %d\n", d.Total)
		for _, g := range d.Groups {
			g.writeRecord(b)
			b.WriteByte('\n')
		}
		return b.Flush()
	}
	for _, g := range d.Groups {
		for i := range g.Count {
			wait := g.MinWait
			if i == 0 {
				wait = g.MaxWait
			}
			g.writeStack(b, i, wait)
			b.WriteByte('\n')
		}
	}
	return b.Flush()
}

// Text returns what Write writes, without white space at the end.
func (g Group) Text() string {
	var b strings.Builder
	_ = g.Write(&b) // a strings.Builder never fails
	return strings.TrimSpace(b.String())
}

// Top names the function that the group's goroutines stand in.
func (g Group) Top() string {
	if len(g.Frames) == 0 {
		return "an empty stack"
	}
	return g.Frames[0].Func
}

func (g Group) writeRecord(b *bufio.Writer) {
	fmt.Fprintf(b, "%d @\n", g.Count)
	if len(g.Labels) > 0 {
		fmt.Fprintf(b, "# labels: {%s}\n", g.labelText(":"))
	}
	for _, f := range g.Frames {
		if f.File == "" {
			fmt.Fprintf(b, "#\t%s\n", f.Func)
			continue
		}
		fmt.Fprintf(b, "#\t\t%s\t%s:%d\n", f.Func, f.File, f.Line)
	}
}

func (g Group) writeStack(b *bufio.Writer, i int, wait time.Duration) {
	var id uint64
	if i < len(g.IDs) {
		id = g.IDs[i]
	}
	fmt.Fprintf(b, "goroutine %d [%s", id, g.State)
	if wait > 0 {
		fmt.Fprintf(b, ", %d minutes", wait/time.Minute)
	}
	if i < g.Locked {
		b.WriteString(", locked to thread")
	}
	if len(g.Labels) > 0 {
		fmt.Fprintf(b, " labels:{%s}", g.labelText(": "))
	}
	b.WriteString("]:\n")
	for _, f := range g.Frames {
		switch {
		case f.File == "":
			fmt.Fprintln(b, f.Func)
		default:
			fmt.Fprintf(b, "%s(...)\n\t%s:%d\n", f.Func, f.File, f.Line)
		}
	}
	if len(g.Frames) == 0 {
		fmt.Fprintf(b, "\t%s\n", unavailable)
	}
	if g.CreatedBy != "" {
		fmt.Fprintf(
			b,
			"created by %s\n\t%s:%d\n",
			g.CreatedBy,
			g.CreatedAt.File,
			g.CreatedAt.Line,
		)
	}
}

func (g Group) labelText(colon string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(g.Labels)) {
		parts = append(parts, strconv.Quote(k)+colon+strconv.Quote(g.Labels[k]))
	}
	return strings.Join(parts, ", ")
}
