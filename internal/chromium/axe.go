package chromium

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// Axe returns the script of axe-core, which npm has installed globally: npm install -g axe-core. A test skips
// where it is missing.
func Axe(t testing.TB) string {
	t.Helper()
	root, err := exec.Command("npm", "root", "-g").Output()
	if err != nil {
		needs.Host(t, "axe", err)
	}
	script, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "axe-core", "axe.min.js"))
	if err != nil {
		needs.Host(t, "axe", err)
	}
	return string(script)
}

// serious lists what axe calls serious or critical, with at most three places each.
const serious = `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) =>
	v.impact + " " + v.id + ", " + v.nodes.length + " times: " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " " + (n.any[0] || n.all[0] || n.none[0] || {message: ""}).message).join("\n\t")))`

// Inaccessible lists what keeps some people from using the page in a tab, in light or in dark, with all folds open.
func Inaccessible(t testing.TB, ctx context.Context, axe string) (all []string) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		var found []string
		await := func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
		must.Do(t, chromedp.Run(ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
			chromedp.Evaluate(`document.querySelectorAll("details").forEach((d) => { d.open = true; })`, nil),
			chromedp.Evaluate(axe+"; true", nil), chromedp.Evaluate(serious, &found, await)))
		for _, f := range found {
			all = append(all, scheme+": "+f)
		}
	}
	return all
}
