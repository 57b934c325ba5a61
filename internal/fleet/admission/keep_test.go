package admission

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirmq/weir/internal/flock"
	"github.com/weirmq/weir/internal/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func keep(t *testing.T) *Keep {
	t.Helper()
	return must.Get(Open(t.TempDir(), noon))(t)
}

func token(t *testing.T, k *Keep, life time.Duration) Token {
	t.Helper()
	return must.Get(k.New(life, noon))(t)
}

func TestTokensValidUntilExpiryOrRevocation(t *testing.T) {
	k := keep(t)
	good, revoked, other := token(t, k, time.Hour), token(t, k, time.Hour), token(t, keep(t), time.Hour)
	must.Do(t, k.Revoke(revoked.ID()))
	if err := k.Revoke(revoked.ID()); err != nil {
		t.Errorf("revoking again: %v", err)
	}
	if err := k.Revoke("0123456789abcdef"); !errors.Is(err, ErrToken) {
		t.Errorf("revoking what is none: %v; want %v", err, ErrToken)
	}
	text := good.Reveal()
	public, mac, _ := cutLast(text)
	id, ends, _ := strings.Cut(public, ".")
	for _, tt := range []struct {
		name, text string
		at         time.Time
		is         error
	}{
		{"good", text, noon, nil},
		{"a moment before its end", text, noon.Add(time.Hour - 1), nil},
		{"at its end", text, noon.Add(time.Hour), ErrExpired},
		{"revoked", revoked.Reveal(), noon, ErrRevoked},
		{"revoked, at its end", revoked.Reveal(), noon.Add(time.Hour), ErrExpired},
		{"of another keep", other.Reveal(), noon, ErrToken},
		{"of a later end", id + ".9" + ends + "." + mac, noon, ErrToken},
		{"of another id", "0" + id[1:] + "." + ends + "." + mac[:10] + "A" + mac[11:], noon, ErrToken},
		{"without its MAC", public + ".", noon, ErrToken},
		{"cut off", text[:len(text)-1], noon, ErrToken},
		{"lengthened", text + "A", noon, ErrToken},
		{"in capitals", strings.ToUpper(id) + "." + ends + "." + mac, noon, ErrToken},
		{"of an end with a sign", id + ".+" + ends + "." + mac, noon, ErrToken},
		{"empty", "", noon, ErrToken},
		{"dots", "..", noon, ErrToken},
		{"long", strings.Repeat("a", 1<<20), noon, ErrToken},
	} {
		got, err := k.Check(tt.text, tt.at)
		if !errors.Is(err, tt.is) || err == nil && got.ID() != good.ID() {
			t.Errorf("%s: %v, %v; want %v", tt.name, got.ID(), err, tt.is)
		}
		if err != nil && len(mac) > 10 && strings.Contains(err.Error(), mac[:10]) {
			t.Errorf("%s: the error shows the MAC: %v", tt.name, err)
		}
	}
	if e := good.Ends(); !e.Equal(noon.Add(time.Hour)) {
		t.Errorf("it ends at %v; want an hour after noon", e)
	}
	for _, life := range []time.Duration{0, -time.Hour, MaxLife + 1} {
		if _, err := k.New(life, noon); err == nil {
			t.Errorf("a token of %v was made", life)
		}
	}
}

// The token of a process ends with its lock, also of a process that was killed.
func TestTokenEndsWithItsProcess(t *testing.T) {
	k := keep(t)
	path := filepath.Join(t.TempDir(), "lock")
	held := must.Get(flock.Try(path))(t)
	x := must.Get(k.NewWhile(path, time.Hour, noon))(t)
	d := NewAuthenticator(k, "v1", func() time.Time { return noon })
	join := func() error { return d.Admit(joining(t, d, x, nil, nil)) }
	if _, err := k.Check(x.Reveal(), noon); err != nil || join() != nil {
		t.Errorf("while the lock is held: %v, %v", err, join())
	}
	_ = held.Close()
	for range 2 {
		var all sync.WaitGroup
		for range 16 { // asking does not make it look held
			all.Go(func() {
				if _, err := k.Check(x.Reveal(), noon); !errors.Is(err, ErrExpired) {
					t.Errorf("after the lock: %v; want %v", err, ErrExpired)
				}
			})
		}
		all.Wait()
		if err := join(); !errors.Is(err, ErrExpired) || !strings.Contains(err.Error(), "with the weir that made it") {
			t.Errorf("joining after the lock: %v; want %v", err, ErrExpired)
		}
		_ = os.Remove(path)
	}
	all, err := k.List()
	if err != nil || len(all) != 1 || !all[0].Ended() {
		t.Errorf("%+v, %v; want one that ended", all, err)
	}
}

func TestTokenListHasNoSecrets(t *testing.T) {
	k := keep(t)
	a, b := token(t, k, time.Hour), token(t, k, 60*24*time.Hour)
	must.Do(t, k.Revoke(b.ID()))
	all, err := k.List()
	if err != nil || len(all) != 2 || all[0] != (Issued{a.ID(), noon, a.Ends(), false, ""}) || all[1] != (Issued{b.ID(), noon, b.Ends(), true, ""}) {
		t.Errorf("%+v, %v; want %s and, revoked, %s", all, err, a.ID(), b.ID())
	}
	text, _ := os.ReadFile(filepath.Join(k.dir, fileTokens))
	for _, x := range []Token{a, b} {
		if _, mac, _ := cutLast(x.Reveal()); strings.Contains(string(text), mac) {
			t.Error("the list holds a token")
		}
	}
	// What ended long ago is forgotten when another is made.
	must.Get(k.New(time.Hour, noon.Add(time.Hour+remembered+time.Second)))(t)
	if all, _ := k.List(); len(all) != 2 || all[0].ID != b.ID() {
		t.Errorf("%+v; want %s and the new one", all, b.ID())
	}
	if _, err := k.Check(a.Reveal(), noon); !errors.Is(err, ErrToken) {
		t.Errorf("a token that is not in the list: %v; want %v", err, ErrToken)
	}
	// A list that cannot be read opens no door.
	must.Do(t, os.WriteFile(filepath.Join(k.dir, fileTokens), []byte("{"), 0o600))
	if _, err := k.Check(b.Reveal(), noon); err == nil {
		t.Error("a token is good whose list cannot be read")
	}
}

func TestTokenIsNotLeaked(t *testing.T) {
	x := token(t, keep(t), time.Hour)
	a := Address{Scheme: SchemeWeir, Host: "h:1", Token: x}
	_, mac, _ := cutLast(x.Reveal())
	var log strings.Builder
	l := slog.New(slog.NewJSONHandler(&log, nil))
	l.Info("x", "token", x, "pointer", &x, "address", a, "within", struct{ T Token }{x})
	j := must.Get(json.Marshal(map[string]any{"t": x, "a": a, "s": struct{ T *Token }{&x}}))(t)
	for _, s := range []string{
		log.String(), string(j), x.String(), a.String(),
		fmt.Sprint(x, &x, a, &a), fmt.Sprintf("%v %+v %#v %s %q %x %d", x, x, x, x, x, x, x), fmt.Sprintf("%+v %#v %v", a, a, struct{ t Token }{x}),
	} {
		if strings.Contains(s, mac[:8]) || strings.Contains(s, fmt.Sprintf("%x", mac[:8])) {
			t.Errorf("the token is shown: %s", s)
		}
	}
}

func TestKeepIsCreatedOnceConcurrently(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "weir")
	const n = 16
	keeps, tokens := make([]*Keep, n), make([]Token, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var err error
			if keeps[i], err = Open(dir, noon); err != nil {
				t.Error(err)
				return
			}
			if tokens[i], err = keeps[i].New(time.Hour, noon); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for i, k := range keeps {
		if k.Pin() != keeps[0].Pin() {
			t.Fatal("two keeps in one folder have two certificates")
		}
		if _, err := k.Check(tokens[(i+1)%n].Reveal(), noon); err != nil {
			t.Errorf("a token of another process: %v", err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Errorf("%v, %v; want four files", entries, err)
	}
	for _, e := range entries {
		if i, err := e.Info(); err != nil || i.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", e.Name(), i.Mode(), err)
		}
	}
	if i, err := os.Stat(dir); err != nil || i.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v; want mode 0700", i.Mode(), err)
	}
}

func TestExpiredCertificateIsRenewed(t *testing.T) {
	dir := t.TempDir()
	a := must.Get(Open(dir, noon))(t)
	b, err := Open(dir, noon.Add(certificateLife-time.Second))
	if err != nil || b.Pin() != a.Pin() {
		t.Errorf("a second before its end: %v, another certificate: %v", err, b.Pin() != a.Pin())
	}
	c, err := Open(dir, noon.Add(certificateLife+time.Second))
	if err != nil || c.Pin() == a.Pin() {
		t.Errorf("after its end: %v, another certificate: %v; want one", err, c.Pin() != a.Pin())
	}
}

func TestKeepReadableByOthersIsRejected(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		spoil      func(dir string) error
	}{
		{"others may write into the folder", "chmod 700", func(d string) error { return os.Chmod(d, 0o722) }},
		{"other users may read the key", "chmod 600", func(d string) error { return os.Chmod(filepath.Join(d, fileHub), 0o644) }},
		{"other users may read the secret", "chmod 600", func(d string) error { return os.Chmod(filepath.Join(d, fileSecret), 0o640) }},
		{"no certificate", "hub.pem", func(d string) error { return os.WriteFile(filepath.Join(d, fileHub), []byte("x"), 0o600) }},
		{"a short secret", "want 32", func(d string) error { return os.WriteFile(filepath.Join(d, fileSecret), []byte("x"), 0o600) }},
		{"a file in the folder's place", "not a directory", func(d string) error {
			return errors.Join(os.RemoveAll(d), os.WriteFile(d, nil, 0o600))
		}},
	} {
		k := keep(t)
		must.Do(t, tt.spoil(k.dir))
		if _, err := Open(k.dir, noon); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", tt.name, err, tt.want)
		}
	}
}

func TestTheFolderOfTheKeep(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"WEIR_FLEET_DIR": "/a/b/", "XDG_STATE_HOME": "/x", "HOME": "/h"}, "/a/b"},
		{map[string]string{"WEIR_FLEET_DIR": "", "XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/weir/fleet"},
		{map[string]string{"XDG_STATE_HOME": "x", "HOME": "/h"}, "/h/.local/state/weir/fleet"},
		{map[string]string{"HOME": "/h"}, "/h/.local/state/weir/fleet"},
		{map[string]string{"WEIR_FLEET_DIR": "a"}, ""},
		{nil, ""},
	} {
		got, err := Dir(func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%v: %q, %v; want %q", tt.env, got, err, tt.want)
		}
	}
}

func TestOnlyThePinnedCertificateIsTaken(t *testing.T) {
	k, other := keep(t), keep(t)
	for _, tt := range []struct {
		name string
		pin  Pin
		is   error
	}{{"right", k.Pin(), nil}, {"wrong", other.Pin(), ErrPin}} {
		a, b := net.Pipe()
		server, client := tls.Server(a, k.TLS()), tls.Client(b, tt.pin.TLS())
		done := make(chan struct{})
		go func() {
			_ = server.Handshake()
			a.Close()
			close(done)
		}()
		err := client.Handshake()
		b.Close()
		<-done
		if !errors.Is(err, tt.is) {
			t.Errorf("%s: %v; want %v", tt.name, err, tt.is)
		}
		if err != nil && (!strings.Contains(err.Error(), k.Pin().String()) || !strings.Contains(err.Error(), tt.pin.String())) {
			t.Errorf("%s: %v; want both fingerprints", tt.name, err)
		}
	}
	spaced := k.Pin().String()
	if p, err := ParsePin(spaced[:9] + ":" + strings.ToUpper(spaced[9:])); err != nil || p != k.Pin() {
		t.Errorf("as openssl prints it: %v, %v", p, err)
	}
	for _, s := range []string{"", "sha256:", spaced[7:], spaced + "00", spaced[:20], "sha256:" + strings.Repeat("0", 64), "sha1:" + spaced[7:]} {
		if _, err := ParsePin(s); err == nil {
			t.Errorf("%q is taken for a pin", s)
		}
	}
}

// Whoever can read the keep has the owner's token, which is unlisted and does not expire; nobody else can
// make it, and it does not open other keeps.
func TestTheOwnersTokenIsGood(t *testing.T) {
	dir := t.TempDir()
	k := must.Get(Open(dir, noon))(t)
	again := must.Get(Open(dir, noon))(t)
	url := Address{Scheme: SchemeWeir, Host: "127.0.0.1:7622"}
	if !url.IsOwn() {
		t.Errorf("%s is not its owner's", url)
	}
	a := again.Own(url)
	if a.IsOwn() || a.Pin != k.Pin() || a.Host != url.Host || strings.Contains(a.String(), "token") {
		t.Errorf("completed it is %s", a)
	}
	later := noon.Add(100 * 365 * 24 * time.Hour)
	if _, err := k.Check(a.Token.Reveal(), later); err != nil {
		t.Errorf("the owner's token: %v", err)
	}
	if all, err := k.List(); err != nil || len(all) != 0 {
		t.Errorf("the list: %v, %v; want none", all, err)
	}
	if _, err := keep(t).Check(a.Token.Reveal(), noon); !errors.Is(err, ErrToken) {
		t.Errorf("at another keep: %v; want %v", err, ErrToken)
	}
	public := a.Token.public()
	forged := Token{id: ownID, ends: maxEnds}.seal(make([]byte, secretSize))
	if _, err := k.Check(forged.Reveal(), noon); forged.public() != public || !errors.Is(err, ErrToken) {
		t.Errorf("one that is forged: %v; want %v", err, ErrToken)
	}
}

// A Kubernetes Secret is mounted as links to world-readable files, in a folder that would be world-writable
// if the file system were not read-only.
func TestReadOnlyKeep(t *testing.T) {
	made := keep(t)
	token := must.Get(made.New(time.Hour, noon))(t)
	mounted := func(t *testing.T, mode fs.FileMode) string {
		dir := t.TempDir()
		must.Do(t, os.Mkdir(filepath.Join(dir, "..data"), 0o755))
		for _, name := range []string{fileHub, fileSecret, fileTokens} {
			b, err := os.ReadFile(filepath.Join(made.dir, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "..data", name), b, mode)
			}
			must.Do(t, errors.Join(err, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)), os.Chmod(dir, 0o777)))
		}
		return dir
	}
	says := func(err error) func(string, uint32) error { return func(string, uint32) error { return err } }
	for _, mode := range []fs.FileMode{0o400, 0o440, 0o444, 0o644} {
		dir := mounted(t, mode)
		k, err := open(dir, noon, says(syscall.EROFS))
		if err != nil {
			t.Fatalf("%v: %v", mode, err)
		}
		if _, err := k.Check(token.Reveal(), noon); err != nil || k.Pin() != made.Pin() {
			t.Errorf("%v: the token: %v; the certificate is another: %v", mode, err, k.Pin() != made.Pin())
		}
		if _, err := k.New(time.Hour, noon); !errors.Is(err, errFixed) {
			t.Errorf("a new token: %v", err)
		}
		if err := k.Revoke(token.ID()); !errors.Is(err, errFixed) {
			t.Errorf("revoking: %v", err)
		}
		if _, err := os.Stat(filepath.Join(dir, fileLock)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v: it was written to: %v", mode, err)
		}
		if _, err := open(dir, noon.Add(certificateLife+time.Second), says(syscall.EROFS)); !errors.Is(err, errFixed) || !strings.Contains(err.Error(), "ended at") {
			t.Errorf("after the certificate's end: %v", err)
		}
		if _, err := Open(dir, noon); err == nil || !strings.Contains(err.Error(), "other users may write there") {
			t.Errorf("%v, where it can be written: %v", mode, err)
		}
		if _, err := open(dir, noon, says(syscall.EACCES)); err == nil || !strings.Contains(err.Error(), "other users may write there") {
			t.Errorf("%v, where others can write it: %v", mode, err)
		}
	}
	if _, err := open(t.TempDir(), noon, says(syscall.EROFS)); !errors.Is(err, errFixed) || !strings.Contains(err.Error(), "there is no secret") {
		t.Errorf("an empty one: %v", err)
	}
	dir := mounted(t, 0o444)
	must.Do(t, os.Chmod(dir, 0o755))
	if _, err := open(dir, noon, says(syscall.EACCES)); err == nil || !strings.Contains(err.Error(), "other users may read or write secret") {
		t.Errorf("files that all may read, in a file system that can be written: %v", err)
	}
}
