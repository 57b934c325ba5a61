package view

import (
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A word opens its meaning by mouse, key and touch, with scripts off, and within the screen.
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
			if err := chromedp.Run(ctx, acts...); err != nil {
				t.Fatal(err)
			}
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
