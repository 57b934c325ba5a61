package serve

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/must"
)

// starter runs a shell in place of weir: it accepts scenarios without the word bad, and a run creates its
// folder and continues until interrupted.
func starter() *Starter {
	return &Starter{Command: func(ctx context.Context, args ...string) *exec.Cmd {
		const script = `
s=$(cat)
if [ "$2" = --explain ]; then
	case $s in *bad*) echo 'weir: <b>bad</b> is not known' >&2; exit 2;; esac
	echo "explained: $s"; exit 0
fi
trap 'echo "written"; exit 130' INT
echo started
mkdir "$3" && echo "$s" >"$3/scenario.yaml" && echo '#[Schema: weir.intervals/v1]' >"$3/intervals.hlog"
while :; do sleep 0.05; done`
		return exec.CommandContext(ctx, "sh", append([]string{"-c", script, "sh"}, args...)...)
	}}
}

// post sends a form with the token.
func post(t *testing.T, srv *httptest.Server, path string, form url.Values, change func(*http.Request)) (int, string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+path, strings.NewReader(form.Encode())))(t)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer letmein")
	if change != nil {
		change(r)
	}
	resp := must.Get((&http.Transport{DisableKeepAlives: true}).RoundTrip(r))(t)
	defer resp.Body.Close()
	b := must.Get(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, string(b)
}

func withToken(r *http.Request) { r.Header.Set("Authorization", "Bearer letmein") }

func TestFormStartsAndStopsRun(t *testing.T) {
	dir := t.TempDir()
	st := starter()
	defer st.Close()
	srv := serving(t, dir, Options{Token: "letmein", Starter: st})
	if _, _, body := get(t, srv.URL+"/start", withToken); !strings.Contains(body, "driver: chan") || !strings.Contains(body, `<form method="post" action="/start">`) {
		t.Errorf("the form:\n%s", afterStyle(body))
	}
	good := url.Values{"scenario": {"name: mine\r\n"}, "folder": {"new"}, "do": {"check"}}
	if status, body := post(t, srv, "/start", good, nil); status != 200 || !strings.Contains(body, "explained: name: mine") {
		t.Errorf("a check: status %d\n%s", status, afterStyle(body))
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Fatalf("a check made %v", left)
	}
	good.Set("do", "start")
	if status, _ := post(t, srv, "/start", good, nil); status != 303 {
		t.Fatalf("a start: status %d, want 303", status)
	}
	if status, _, body := get(t, srv.URL+"/live?dir=new", withToken); status != 200 || !strings.Contains(body, `action="/stop"`) {
		t.Errorf("the page of a run that begins: status %d\n%s", status, afterStyle(body))
	}
	until(t, "the page has the run in progress", func() bool {
		_, _, body := get(t, srv.URL+"/start", withToken)
		return strings.Contains(body, "The run in new has been running since") && strings.Contains(body, `href="/live?dir=new"`)
	})
	until(t, "the live page stops the run", func() bool {
		status, _, body := get(t, srv.URL+"/live?dir=new", withToken)
		return status == 200 && strings.Contains(body, `action="/stop"`) && strings.Contains(body, `data-follow="/follow?dir=new"`)
	})
	if status, _, body := get(t, srv.URL+"/run?dir=new", withToken); status != 422 || !strings.Contains(body, `href="/live?dir=new"`) {
		t.Errorf("a run without a result: status %d\n%s", status, afterStyle(body))
	}
	if status, _, _ := get(t, srv.URL+"/live?dir=gone", withToken); status != 404 {
		t.Errorf("a run that is not there: status %d, want 404", status)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "new", "scenario.yaml")); err != nil || string(b) != "name: mine\n" {
		t.Errorf("the scenario is %q, %v", b, err)
	}
	second := url.Values{"scenario": {"name: other"}, "folder": {"other"}, "do": {"start"}}
	if _, body := post(t, srv, "/start", second, nil); !strings.Contains(body, "a run is in progress already (one at a time") {
		t.Errorf("a second run was not refused:\n%s", afterStyle(body))
	}
	if status, _ := post(t, srv, "/stop", nil, func(r *http.Request) { r.Header.Del("Authorization") }); status != 401 || st.folder() != "new" {
		t.Errorf("a stop without the token: status %d, and the run in %q continues", status, st.folder())
	}
	if status, _ := post(t, srv, "/stop", nil, nil); status != 303 {
		t.Errorf("a stop: status %d", status)
	}
	until(t, "the page says how the run ended", func() bool {
		_, _, body := get(t, srv.URL+"/start", withToken)
		return strings.Contains(body, "The run in new ended early: it was stopped.") && strings.Contains(body, "started\nwritten")
	})
}

// until waits until it is so.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for range 200 {
		if so() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("after 10 s it is still not so that %s", what)
}

func TestInvalidStartIsRejected(t *testing.T) {
	dir := several(t)
	st := starter()
	defer st.Close()
	srv := serving(t, dir, Options{Token: "letmein", Starter: st})
	for name, c := range map[string]struct {
		folder, scenario string
		change           func(*http.Request)
		status           int
		want             string
	}{
		"a scenario that weir refuses":    {"new", "bad", nil, 200, "weir: &lt;b&gt;bad&lt;/b&gt; is not known"},
		"a folder that is there":          {"fast", "good", nil, 200, "fast exists"},
		"a folder elsewhere":              {"../new", "good", nil, 200, "is not a name for a new folder"},
		"a folder that is a flag":         {"-x", "good", nil, 200, "is not a name for a new folder"},
		"a scenario that is far too long": {"new", strings.Repeat("x", mostScenario), nil, 400, "the form cannot be read"},
		"a page of others":                {"new", "good", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403, ""},
		"another origin":                  {"new", "good", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403, ""},
		"no token":                        {"new", "good", func(r *http.Request) { r.Header.Del("Authorization") }, 401, ""},
	} {
		status, body := post(t, srv, "/start", url.Values{"scenario": {c.scenario}, "folder": {c.folder}, "do": {"start"}}, c.change)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: status %d, want %d and %q\n%s", name, status, c.status, c.want, afterStyle(body))
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("a run was started")
	}
	// A server that only reads has no such page, whatever the token.
	reading := serving(t, dir, Options{Token: "letmein"})
	if status, _ := post(t, reading, "/start", url.Values{"do": {"start"}}, nil); status != 404 && status != 405 {
		t.Errorf("a server that only reads answers with %d", status)
	}
	open := serving(t, dir, Options{Starter: st})
	if status, _ := post(t, open, "/start", url.Values{"do": {"start"}}, nil); status != 404 && status != 405 {
		t.Errorf("a server without a token answers with %d", status)
	}
}

func TestATokenIsReadFromItsFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	for text, ok := range map[string]bool{
		strings.Repeat("t", 20) + "\n": true, strings.Repeat("t", 200): true,
		strings.Repeat("t", 19): false, strings.Repeat("t", 201): false, strings.Repeat("t", 20) + " t": false,
	} {
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		token, err := ReadToken(file)
		if ok && (err != nil || token != strings.TrimSpace(text)) || !ok && err == nil {
			t.Errorf("%q: %q, %v", text, token, err)
		}
	}
	if _, err := ReadToken(file + ".none"); err == nil {
		t.Error("a file that does not exist is read")
	}
}
