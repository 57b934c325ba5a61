package cli

import (
	"html"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
)

// served runs weir serve until use has ended, and returns its exit code and what it said.
func served(t *testing.T, w World, use func(base string), args ...string) (int, string) {
	t.Helper()
	signals := make(chan os.Signal, 1)
	stderr := &watch{}
	w.Signals, w.Stderr = signals, stderr
	go func() {
		defer func() { signals <- syscall.SIGINT }()
		for range 200 {
			if m := regexp.MustCompile(`at (https?://\S+)`).FindStringSubmatch(stderr.String()); m != nil {
				use(m[1])
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	code, _, _ := do(t, w, append([]string{"serve", "--listen", "127.0.0.1:0", "--index", filepath.Join(t.TempDir(), "i")}, args...)...)
	return code, stderr.String()
}

// page returns what is at an address. On a busy host it waits until the whole folder is read.
func page(t *testing.T, at string) string {
	t.Helper()
	for {
		got := pageWith(t, at, "")
		if !strings.Contains(got, "weir is reading the folder") || t.Context().Err() != nil {
			return got
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// pageWith shows a token.
func pageWith(t *testing.T, at, token string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

func TestAFolderIsServedUntilASignal(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, makeSeries(filepath.Join(dir, "runs"), 5, made{seed: 1, hour: 3}))
	var list, one string
	code, said := served(t, World{Dir: dir}, func(base string) {
		list = page(t, base)
		one = page(t, base+"run?dir=01-made-r1")
	}, "runs")
	if code != int(OK) || !strings.Contains(said, "weir: serving runs at http://127.0.0.1:") || strings.Contains(said, "everyone") {
		t.Errorf("exit code %d, and it said %q", code, said)
	}
	if !strings.Contains(list, "5 runs. Times are UTC") || !strings.Contains(one, `<svg class="chart"`) {
		t.Errorf("the list:\n%s\nand a run of %d bytes", list, len(one))
	}
}

func TestStartingRunsRequiresToken(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, "runs"), 0o700))
	var without, with, form string
	code, said := served(t, World{Dir: dir}, func(base string) {
		at, _, _ := strings.Cut(base, "?token=")
		_, token, _ := strings.Cut(base, "?token=")
		form = pageWith(t, at+"start", token)
		without, with = page(t, at+"start"), page(t, strings.Replace(base, "/?", "/start?", 1))
	}, "runs", "--start")
	if code != int(OK) || !regexp.MustCompile(`/\?token=[A-Z2-7]{20,}\n`).MatchString(said) {
		t.Errorf("exit code %d, and it said %q", code, said)
	}
	// What the form begins with is a scenario that runs.
	_, example, _ := strings.Cut(form, "required>")
	example, _, _ = strings.Cut(example, "</textarea>")
	must.Do(t, os.WriteFile(filepath.Join(dir, "example.yaml"), []byte(html.UnescapeString(example)), 0o600))
	if code, _, stderr := do(t, World{Dir: dir}, "run", "example.yaml", "--explain"); code != int(OK) {
		t.Errorf("the form begins with a scenario that is refused: %s", stderr)
	}
	if !strings.Contains(without, "it has the token") || !strings.Contains(with, `href="/start"`) {
		t.Errorf("without: %q\nwith: %q", without, with)
	}
}
