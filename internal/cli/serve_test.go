package cli

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
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

// page returns what is at an address.
func page(t *testing.T, at string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Error(err)
		return ""
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
	if err := makeSeries(filepath.Join(dir, "runs"), 5, made{seed: 1, hour: 3}); err != nil {
		t.Fatal(err)
	}
	var list, one string
	code, said := served(t, World{Dir: dir}, func(base string) {
		list = page(t, base)
		one = page(t, base+"run?dir=01-made-r1")
	}, "runs")
	if code != int(OK) || !strings.Contains(said, "weir: serving runs at http://127.0.0.1:") || strings.Contains(said, "everyone") {
		t.Errorf("exit code %d, and it said %q", code, said)
	}
	if !strings.Contains(list, "1 to 5 of 5 runs") || !strings.Contains(one, `<svg class="chart"`) {
		t.Errorf("the list:\n%s\nand a run of %d bytes", list, len(one))
	}
}
