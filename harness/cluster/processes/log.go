package processes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// logTime is the form of a line's time: that of container runtimes, always with nine digits of a second.
const logTime = "2006-01-02T15:04:05.000000000Z07:00"

// logRetry is the wait before a line that could not be written is written again, because a full disk must lose no
// lines. The process waits meanwhile, as it would if a container runtime couldn't write.
const logRetry = 100 * time.Millisecond

// copyLog writes what a process prints as the log lines of a container runtime, until the process ends.
func copyLog(log *os.File, from io.Reader) {
	in := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			writeAll(
				log,
				fmt.Sprintf(
					"%s stderr F %s\n",
					time.Now().UTC().Format(logTime),
					strings.TrimSuffix(line, "\n"),
				),
			)
		}
		if err != nil {
			return
		}
	}
}

func writeAll(log *os.File, text string) {
	for text != "" {
		n, err := log.WriteString(text)
		text = text[n:]
		if err != nil {
			time.Sleep(logRetry)
		}
	}
}

// followEvery is how often a log is looked at for new lines.
const followEvery = 100 * time.Millisecond

// followLogs streams a folder's log files one after the other, with what is added to them, until ctx ends.
func followLogs(ctx context.Context, dir string) io.ReadCloser {
	r, w := io.Pipe()
	stop := context.AfterFunc(ctx, func() { w.Close() })
	go func() {
		defer stop()
		tick := time.NewTicker(followEvery)
		defer tick.Stop()
		for n := 0; ; n++ {
			err := followLog(
				ctx,
				w,
				tick.C,
				filepath.Join(dir, fmt.Sprintf("%d.log", n)),
				filepath.Join(dir,
					fmt.Sprintf("%d.log", n+1)),
			)
			if err != nil {
				if ctx.Err() != nil {
					err = nil
				}
				w.CloseWithError(err)
				return
			}
		}
	}()
	return r
}

// followLog copies one file, with what is added to it. It returns when the next file is there and the first has been
// read to its end.
func followLog(ctx context.Context, w io.Writer, tick <-chan time.Time, file, next string) error {
	var f *os.File
	for {
		_, err := os.Stat(next)
		over := err == nil
		if f == nil {
			if f, err = os.Open(file); err == nil {
				defer f.Close()
			} else if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if f != nil {
			if _, err := io.Copy(w, f); err != nil {
				return err
			}
		}
		if over {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick:
		}
	}
}

// lastLines returns the last n lines of the newest log file of a folder, without their times. starts is the number of
// log files.
func lastLines(dir string, starts, n int) string {
	b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.log", max(0, starts-1))))
	if err != nil {
		return "its log can't be read: " + err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	lines = lines[max(0, len(lines)-n):]
	for i, line := range lines {
		if f := strings.SplitN(line, " ", 4); len(f) == 4 {
			lines[i] = f[3]
		}
	}
	return strings.Join(lines, "\n")
}
