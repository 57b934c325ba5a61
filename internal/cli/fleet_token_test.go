package cli

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/hub"
	"github.com/weirmq/weir/internal/must"
)

// tokened runs weir fleet token with a keep of its own.
func tokened(t *testing.T, dir string, args ...string) (stdout, stderr *watch) {
	t.Helper()
	stdout, stderr = &watch{}, &watch{}
	code := Main(t.Context(), World{
		Args: append([]string{"fleet", "token"}, args...), Stdout: stdout, Stderr: stderr,
		Env: func(name string) (string, bool) { return dir, name == admission.VariableDir },
	})
	if code != int(OK) {
		t.Fatalf("weir fleet token %q: exit code %d\n%s", args, code, stderr)
	}
	return stdout, stderr
}

// An agent can join by the printed URL until the token is revoked. Only stdout contains the token, no file
// or other stream.
func TestTokenAdmitsAgentWithoutLeaking(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keep := must.Get(admission.Open(filepath.Join(dir, "keep"), time.Now()))(t)
	log := &watch{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h := must.Get(hub.Start(ctx, hub.Options{Keep: keep, Dir: filepath.Join(dir, "hub"), Log: logger}))(t)
	defer h.Close()
	stdout, stderr := tokened(t, filepath.Join(dir, "keep"), "--listen", h.Addr())
	a := must.Get(admission.Parse(strings.TrimSuffix(stdout.String(), "\n")))(t)
	self := must.Get(admission.NewSelf())(t)
	nc := must.Get(hub.Dial(ctx, a, self, "agent-1", logger))(t)
	defer nc.Close()
	list, listErr := tokened(t, filepath.Join(dir, "keep"), "--list")
	gone, goneErr := tokened(t, filepath.Join(dir, "keep"), "--revoke", a.Token.ID())
	_, refused := hub.Dial(ctx, a, self, "agent-2", logger)
	if refused == nil || !strings.Contains(log.String(), admission.ErrRevoked.Error()) {
		t.Errorf("a token that is revoked: %v; want it refused\n%s", refused, log)
	}
	if err := nc.FlushTimeout(time.Minute); err != nil || !strings.Contains(goneErr.String(), "is revoked") {
		t.Errorf("who came in before: %v; want it to stay in\n%s", err, goneErr)
	}
	mac := a.Token.Reveal()[strings.LastIndex(a.Token.Reveal(), ".")+1:]
	raw := must.Get(base64.RawURLEncoding.DecodeString(mac))(t)
	seen := func(what, text string) {
		for how, form := range map[string]string{"plain": mac[4:36], "in hexadecimal": hex.EncodeToString(raw[4:28]), "as bytes": string(raw[4:28])} {
			if strings.Contains(text, form) {
				t.Errorf("the token is in %s, %s", what, how)
			}
		}
	}
	for what, text := range map[string]string{
		"stderr": stderr.String(), "the list": list.String() + listErr.String(), "what revoking says": gone.String() + goneErr.String(),
		"the log": log.String(), "an error": refused.Error(), "the address": a.String(),
	} {
		seen(what, text)
	}
	files := 0
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // of the hub's, meanwhile
		}
		files++
		seen(path, string(b))
		return err
	}); err != nil || files < 4 {
		t.Errorf("%d files, %v", files, err)
	}
}

func TestThePageListsTokenJSON(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"--json", "--listen", "h:1"}, {"--list", "--json"}} {
		stdout, _ := tokened(t, dir, args...)
		allDocumented(t, "fleet token", stdout.String())
	}
}
