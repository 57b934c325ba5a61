package cli

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/fleet"
	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/pace"
)

// A coordinator with TLS and tokens is queried with a temporary token, which must be neither visible nor
// left behind, and with the agents' join URL, whose token must not be visible either.
func TestSurveyDoesNotLeakItsToken(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	dir := t.TempDir()
	keep := must.Get(admission.Open(dir, time.Now()))(t)
	token := must.Get(keep.New(time.Hour, time.Now()))(t)
	build := must.Get(buildinfo.Identity())(t)
	f := must.Get(fleet.Open(t.Context(), fleet.Options{Keep: keep, Dir: filepath.Join(dir, "run"), Version: build}))(t)
	defer f.Close()
	at := must.Get(admission.Parse(f.JoinURL() + "?pin=" + keep.Pin().String() + "&token=" + token.Reveal()))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	a := &agent.Agent{Address: at, Name: "a", Version: build, Clock: pace.NewClock, Env: func(string) (string, bool) { return "", false }}
	a.Log = slog.New(slog.DiscardHandler)
	go func() { ended <- a.Run(ctx) }()
	defer func() {
		cancel()
		<-ended
	}()
	must.Do(t, f.Await(t.Context(), fleet.Want{Agents: 1}, time.Minute))
	for _, args := range [][]string{
		{"fleet", "status", "--json", "--listen", at.Host},
		{"fleet", "status", "--json", "--nats", at.Reveal()},
		{"fleet", "status", "--nats", at.Reveal()},
		{"fleet", "doctor", "--listen", at.Host},
		{"fleet", "doctor", "--json", "--nats", at.Reveal()},
	} {
		stdout, stderr := &watch{}, &watch{}
		code := Main(t.Context(), World{
			Args: append(args, "--wait", "1s"), Stdout: stdout, Stderr: stderr, Env: func(name string) (string, bool) { return dir, name == admission.VariableDir },
		})
		if code != int(OK) {
			t.Errorf("weir %q: exit code %d\n%s", args[:2], code, stderr)
		}
		for what, text := range map[string]string{"stdout": stdout.String(), "stderr": stderr.String()} {
			if strings.Contains(text, "token=") || strings.Contains(text, token.Reveal()) {
				t.Errorf("weir %q: a token is on %s", args[:2], what)
			}
		}
		if args[2] == "--json" {
			allDocumented(t, "fleet "+args[1], stdout.String())
		}
	}
	if all, err := keep.List(); err != nil || len(all) != 1 || all[0].ID != token.ID() {
		t.Errorf("tokens afterwards: %v, %v; want the one that was there", all, err)
	}
}
