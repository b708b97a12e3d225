package report_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/kube-relapse/relapse/harness/report"
)

// browser starts a headless browser. Where none is installed the test is skipped, or with CI set it fails: there it has
// to run.
func browser(t *testing.T) context.Context {
	t.Helper()
	var exe string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			exe = path
			break
		}
	}
	if exe == "" {
		const hint = "no chromium or chrome on PATH; as root on Debian: apt-get install -y chromium"
		if os.Getenv("CI") != "" {
			t.Fatal(hint)
		}
		t.Skip(hint)
	}
	// The first start reads some hundred MiB from a disk that may be busy. The browser's folder is left to chromedp, which
	// ends the processes that outlive the browser before it removes the folder: in t.TempDir they would go on writing.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(exe), chromedp.WSURLReadTimeout(5*time.Minute))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to run as root with it
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // the browser lives as long as this context: it must have no time limit
		t.Fatalf("starting %s: %v", exe, err)
	}
	ctx, cancel = context.WithTimeout(ctx, 10*time.Minute) // of a machine that is busy with something else
	t.Cleanup(cancel)
	return ctx
}

// watched are the requests that a page made and whatever its console said.
type watched struct {
	mu       sync.Mutex
	requests []string
	said     []string
}

func watch(t *testing.T, ctx context.Context) *watched {
	t.Helper()
	w := &watched{}
	must(t, chromedp.Listen(ctx, func(ev any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch ev := ev.(type) {
		case *network.EventRequestWillBeSent:
			w.requests = append(w.requests, ev.Request.URL)
		case *runtime.EventConsoleAPICalled:
			w.said = append(w.said, fmt.Sprintf("console: %s", ev.Type))
		case *runtime.EventExceptionThrown:
			w.said = append(w.said, "exception: "+ev.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			w.said = append(w.said, fmt.Sprintf("%s: %s", ev.Entry.Level, ev.Entry.Text))
		}
	}))
	for _, enable := range []cdp.Command[cdp.Empty, cdp.Empty]{log.Enable, runtime.Enable} {
		_, err := chromedp.Call(ctx, enable, cdp.Empty{})
		must(t, err)
	}
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	must(t, err)
	return w
}

// artifacts is where screenshots are kept.
func artifacts(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("RELAPSE_ARTIFACTS")
	if dir == "" {
		return t.TempDir()
	}
	must(t, os.MkdirAll(dir, 0o755))
	return dir
}

// look opens a file at a size, asserts that the page doesn't have to be scrolled sideways, and keeps a picture of all
// of it.
func look(t *testing.T, ctx context.Context, file, picture string, width, height int64, dark bool) {
	t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	must(t, err)
	must(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, height), chromedp.Navigate("file://"+file)))
	wide, err := chromedp.Run(ctx, chromedp.Evaluate[int64](`Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)`))
	must(t, err)
	inner, err := chromedp.Run(ctx, chromedp.Evaluate[int64](`window.innerWidth`))
	must(t, err)
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(artifacts(t), picture), png, 0o644))
	if inner != width || wide > inner {
		t.Errorf("at %d px the page is %d px wide in a window of %d px", width, wide, inner)
	}
}

func TestPageInTheBrowser(t *testing.T) {
	run := rich(t).write(t)
	judgeAndWrite(t, run)
	checkInTheBrowser(t, browser(t), filepath.Join(run, report.PageFile), "report")
}

// TestPagesOfRunsInTheBrowser opens the index and the pages of real runs, as a nightly leaves them.
func TestPagesOfRunsInTheBrowser(t *testing.T) {
	dir := os.Getenv("RELAPSE_RUNS")
	if dir == "" {
		t.Skip("RELAPSE_RUNS names no folder of runs; make pages does")
	}
	dir, err := filepath.Abs(dir)
	must(t, err)
	pages, err := filepath.Glob(filepath.Join(dir, "*", report.PageFile))
	must(t, err)
	pages = slices.DeleteFunc(pages, func(p string) bool { // a link to one of the others
		info, err := os.Lstat(filepath.Dir(p))
		return err != nil || !info.IsDir()
	})
	if len(pages) == 0 {
		t.Fatalf("there is no %s below %s", report.PageFile, dir)
	}
	for _, page := range append(pages, filepath.Join(dir, report.IndexFile)) {
		name := strings.TrimSuffix(filepath.Base(page), ".html")
		if name != "index" {
			name = filepath.Base(filepath.Dir(page))
		}
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(page)
			must(t, err)
			valid(t, string(b))
			if len(b) > 5<<20 {
				t.Errorf("it has %d bytes, want 5 MiB at most", len(b))
			}
			checkInTheBrowser(t, browser(t), page, name)
		})
	}
}

// checkInTheBrowser opens a page on a phone, on a desktop, in the dark and on paper.
func checkInTheBrowser(t *testing.T, ctx context.Context, file, name string) {
	t.Helper()
	w := watch(t, ctx)
	look(t, ctx, file, name+"-phone.png", 390, 844, false)
	look(t, ctx, file, name+"-phone-dark.png", 390, 844, true)
	look(t, ctx, file, name+"-desktop-dark.png", 1280, 800, true)
	look(t, ctx, file, name+"-desktop.png", 1280, 800, false)
	pdf, err := chromedp.Run(ctx, chromedp.PrintToPDF())
	must(t, err)
	if len(pdf) < 10<<10 {
		t.Errorf("printed it has %d bytes", len(pdf))
	}
	must(t, os.WriteFile(filepath.Join(artifacts(t), name+".pdf"), pdf, 0o644))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.requests {
		if r != "file://"+file && !strings.HasPrefix(r, "data:,") {
			t.Errorf("it asked for %s", r)
		}
	}
	if len(w.requests) < 4 {
		t.Errorf("%d requests were seen, want one for each time it was opened: nothing was watched", len(w.requests))
	}
	for _, s := range w.said {
		t.Errorf("the browser says %s", s)
	}
}
