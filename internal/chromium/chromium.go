// Package chromium starts a real browser without a window, for tests that look at pages.
package chromium

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/weirmq/weir/internal/needs"
)

// patience bounds what a test does in a browser, and busy how long a browser takes to begin
// on a busy host.
const (
	patience = 3 * time.Minute
	busy     = time.Minute
)

// Start starts Chromium with one empty page and returns the context by which package
// chromedp drives it, for at most three minutes. The browser and its profile go with the
// test. A run of the short tests has none.
func Start(t testing.TB) context.Context {
	t.Helper()
	needs.Time(t)
	needs.NoRace(t)
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		needs.Host(t, "chromium", "only a browser shows what pages do")
	}
	profile, err := os.MkdirTemp("", "weir-browser-") //nolint:usetesting // t.TempDir fails the test where a browser still writes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // its processes may write for a moment after it has gone
		for range 50 {
			if os.RemoveAll(profile) == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.UserDataDir(profile), chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(busy))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancelTab := chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until the browser has gone
		cancelTab()
	})
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("starting %s: %v", program, err)
	}
	ctx, cancelLate := context.WithTimeout(ctx, patience)
	t.Cleanup(cancelLate)
	return ctx
}
