package view

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weirmq/weir/internal/must"
)

// A word opens its meaning by mouse, key and touch, and within the screen.
func TestBrowserExplainsWords(t *testing.T) {
	t.Parallel()
	ctx := browserOf(t)
	e, _ := explored(t)
	const shown = `(() => { const open = document.querySelectorAll(":popover-open"); if (open.length !== 1) return open.length + " are open"; ` +
		`const box = open[0].getBoundingClientRect(); ` +
		`return (box.left < 0 || box.right > innerWidth + 1 || box.top < 0 || box.bottom > innerHeight + 1 ? "off the screen: " : "") + open[0].textContent })()`
	for _, width := range []int64{1440, 390} {
		seenAs(t, ctx, html1(t, e, Options{}), width)
		asked[bool](t, ctx, `(() => { document.querySelector("button.word").focus(); return true })()`)
		word := asked[string](t, ctx, `document.activeElement.textContent`)
		do := func(what, want string, acts ...chromedp.Action) {
			t.Helper()
			must.Do(t, chromedp.Run(ctx, acts...))
			if got := asked[string](t, ctx, shown); got != want {
				t.Errorf("%d px, %s: %q is shown of %q; want %q", width, what, got, word, want)
			}
		}
		meaning := asked[string](t, ctx, `document.activeElement.popoverTargetElement.textContent`)
		do("Enter", meaning, chromedp.KeyEvent(kb.Enter))
		do("Escape", "0 are open", chromedp.KeyEvent(kb.Escape))
		at := asked[[2]float64](t, ctx, `(() => { const b = document.querySelector("button.word").getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2] })()`)
		do("a click", meaning, chromedp.MouseClickXY(at[0], at[1]))
		do("a click elsewhere", "0 are open", chromedp.MouseClickXY(2, 2))
		points := []*input.TouchPoint{{X: at[0], Y: at[1]}}
		do("a tap", meaning, input.DispatchTouchEvent(input.TouchStart, points), input.DispatchTouchEvent(input.TouchEnd, []*input.TouchPoint{}))
	}
}

// A saved picture stands alone: with its heading, and with the names of its lines.
func TestBrowserSavesWholePictures(t *testing.T) {
	t.Parallel()
	ctx := browserOf(t)
	e, _ := explored(t)
	seenAs(t, ctx, html1(t, e, Options{}), 1280)
	// Saving goes through a link to a blob: the test keeps the blob instead.
	asked[bool](t, ctx, `(() => { URL.createObjectURL = (b) => { window.saved = b; return "blob:none"; }; HTMLAnchorElement.prototype.click = () => {}; return true })()`)
	asked[bool](t, ctx, `(() => { [...document.getElementById("c-e2e-d").closest("figure").querySelectorAll(".save button")].find((b) => b.textContent === "SVG").click(); return true })()`)
	var svg string
	must.Do(t, chromedp.Run(ctx, chromedp.Evaluate(`saved.text()`, &svg, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) })))
	path := filepath.Join(t.TempDir(), "picture.svg")
	must.Do(t, os.WriteFile(path, []byte(svg), 0o644))
	must.Do(t, chromedp.Run(ctx, chromedp.Navigate("file://"+path)))
	says := asked[[]string](t, ctx, `[...document.querySelectorAll("svg > text.strong, svg > g > text:last-child")].map((e) => e.textContent)`)
	for _, want := range []string{"e2e by percentile", "1 response", "2 service"} {
		if !slices.Contains(says, want) {
			t.Errorf("the picture says %q; want %q, too", says, want)
		}
	}
}
