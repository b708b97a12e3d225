package report_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// kept are runs by their verdicts: one of a real cluster, that run without a dump, and one whose fixed arm has the
// incident, too.
func kept(t *testing.T) map[verdict.Verdict]string {
	t.Helper()
	whole, gone := unpack(t, "testdata/earlier/pleg-deadlock.tar.zst"), unpack(t, "testdata/earlier/pleg-deadlock.tar.zst")
	removeArtifact(t, gone, "identity-fixed")
	ill := rich(t)
	ill.fixed.more = func(w *bundle.Writer) { extras(t, w, "fixed", 1) }
	out := map[verdict.Verdict]string{verdict.Validated: whole, verdict.VerdictInconclusive: gone, verdict.StillVulnerable: ill.write(t)}
	for want, run := range out {
		v, err := judge.Run(run)
		must(t, err)
		if v.Verdict != want {
			t.Fatalf("%s is %s: %s, want %s", run, v.Verdict, v.Sentence, want)
		}
		must(t, report.Write(run, v))
	}
	return out
}

// On a phone, too, whoever opens a report sees at once how it ended and what each arm did.
func TestTheOutcomeIsOnTheFirstScreen(t *testing.T) {
	ctx := browser(t)
	for verdict, run := range kept(t) {
		for _, eyes := range []string{"none", "deuteranopia"} {
			for _, dark := range []bool{false, true} {
				_, err := chromedp.Call(ctx, emulation.SetEmulatedVisionDeficiency, emulation.SetEmulatedVisionDeficiencyParams{
					Type: emulation.SetEmulatedVisionDeficiencyType(eyes)})
				must(t, err)
				name := string(verdict) + "-" + eyes + map[bool]string{true: "-dark"}[dark]
				look(t, ctx, filepath.Join(run, report.PageFile), name+"-1280.png", 1280, 800, dark)
				look(t, ctx, filepath.Join(run, report.PageFile), name+"-400.png", 400, 800, dark)
			}
		}
		onFirstScreen(t, ctx, string(verdict))
	}
}

// onFirstScreen asserts that the verdict and the outcome of each arm are on the screen before anybody scrolls.
func onFirstScreen(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	seen, err := chromedp.Run(ctx, chromedp.Evaluate[int64](`[...document.querySelectorAll("h1, .armline .chip")]
		.filter(e => e.getBoundingClientRect().bottom <= window.innerHeight && e.getBoundingClientRect().right <= window.innerWidth).length`))
	must(t, err)
	if seen != 3 {
		t.Errorf("%s: %d of the verdict and two outcomes are on the first screen of a phone", name, seen)
	}
}

// TestPicture takes the picture that the README shows, of a run on a real cluster; make picture does.
func TestPicture(t *testing.T) {
	to := os.Getenv("RELAPSE_PICTURE")
	if to == "" {
		t.Skip("RELAPSE_PICTURE names no file; make picture does")
	}
	ctx, run := browser(t), unpack(t, "testdata/earlier/pleg-deadlock.tar.zst")
	v, err := judge.Run(run)
	must(t, err)
	must(t, report.Write(run, v))
	must(t, chromedp.Do(ctx, chromedp.EmulateViewport(1000, 760), chromedp.Navigate("file://"+filepath.Join(run, report.PageFile))))
	raw, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	must(t, err)
	whole, err := png.Decode(bytes.NewReader(raw))
	must(t, err)
	small := image.NewPaletted(whole.Bounds(), commonest(whole, 256))
	draw.Draw(small, small.Bounds(), whole, image.Point{}, draw.Src)
	var out bytes.Buffer
	must(t, png.Encode(&out, small))
	if out.Len() > 150<<10 {
		t.Errorf("the picture has %d bytes, want 150 KiB at most", out.Len())
	}
	must(t, os.WriteFile(to, out.Bytes(), 0o644))
}

// commonest returns the n colours that most points of a picture have.
func commonest(of image.Image, n int) color.Palette {
	points := map[color.Color]int{}
	for y := range of.Bounds().Dy() {
		for x := range of.Bounds().Dx() {
			points[of.At(x, y)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(points), func(a, b color.Color) int {
		return cmp.Or(points[b]-points[a], cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	return all[:min(n, len(all))]
}
