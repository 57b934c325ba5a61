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
)

// patience bounds what a test does in a browser, and busy how long a browser takes to begin
// on a busy host.
const (
	patience = 3 * time.Minute
	busy     = time.Minute
)

// Start starts Chromium with one empty page and returns the context by which package
// chromedp drives it, for at most three minutes. The browser and its profile go with the
// test. Without Chromium in PATH the test is skipped, and fails where
// WEIR_REQUIRE_CHROMIUM is set.
func Start(t testing.TB) context.Context {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		if os.Getenv("WEIR_REQUIRE_CHROMIUM") != "" {
			t.Fatal("WEIR_REQUIRE_CHROMIUM is set, and there is no chromium in PATH")
		}
		t.Skip("only a browser shows what pages do, and this host has none (Debian's package chromium)")
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
