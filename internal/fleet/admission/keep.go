package admission

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/weirmq/weir/internal/flock"
)

// VariableDir is the environment variable that names the folder of the keep.
const VariableDir = "WEIR_FLEET_DIR"

// StateDir returns the folder in which a coordinator keeps what changes: that of the keep, or
// weir/fleet in the user's folder for state where the keep cannot be written.
func StateDir(lookup func(name string) (string, bool)) (string, error) {
	dir, err := Dir(lookup)
	if err != nil {
		return "", err
	}
	if err := syscall.Access(dir, writable); !errors.Is(err, syscall.EROFS) && !errors.Is(err, syscall.EACCES) {
		return dir, nil
	}
	state, err := Dir(func(name string) (string, bool) {
		if name == VariableDir {
			return "", false
		}
		return lookup(name)
	})
	if err != nil || state == dir {
		return "", fmt.Errorf("%s cannot be written, and there is no other folder for what a coordinator keeps (set XDG_STATE_HOME to one)", dir)
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return "", fmt.Errorf("making the folder for what a coordinator keeps: %w (set XDG_STATE_HOME to a folder that can be written)", err)
	}
	return state, nil
}

// Dir returns the folder of the keep: VariableDir, or weir/fleet in the user's
// folder for state. It looks for nothing there.
func Dir(lookup func(name string) (string, bool)) (string, error) {
	for _, x := range []struct{ name, below string }{{VariableDir, ""}, {"XDG_STATE_HOME", "weir/fleet"}, {"HOME", ".local/state/weir/fleet"}} {
		dir, ok := lookup(x.name)
		if !ok || dir == "" {
			continue
		}
		if !filepath.IsAbs(dir) {
			if x.name == "XDG_STATE_HOME" {
				continue // its specification asks for that
			}
			return "", fmt.Errorf("%s: %s is not absolute (a folder's absolute path)", x.name, dir)
		}
		return filepath.Join(dir, filepath.FromSlash(x.below)), nil
	}
	return "", fmt.Errorf("finding the folder of the fleet's certificate: there is no home folder (set %s to a folder)", VariableDir)
}

// The files of a keep.
const (
	fileHub    = "hub.pem"     // certificate and key
	fileSecret = "secret"      // of the tokens
	fileTokens = "tokens.json" // which were made
	fileLock   = "lock"
)

const secretSize = 32

// A Keep is the folder in which the coordinator's host has what its fleet is held
// together by. Its methods may be called by any goroutine, and by any number of
// processes at once: what changes is read anew each time, and changed under a lock.
type Keep struct {
	dir         string
	fixed       bool        // it cannot be written from here
	readable    fs.FileMode // what others may be allowed with its files
	certificate tls.Certificate
	pin         Pin
	secret      []byte
}

// Open opens the keep in a folder, and makes what is missing of it: the folder,
// readable by its owner only; a certificate for 5 years, and again when it has ended;
// the secret of the tokens. Where others can change the folder or read its files it
// refuses.
//
// A folder that this process cannot write holds all of it already, as one that was mounted.
// In a file system that is mounted read-only nobody changes it, and who mounted it chose who
// may read it. Elsewhere it must be root's, who may let a group read the files.
func Open(dir string, now time.Time) (*Keep, error) {
	k, err := open(dir, now, syscall.Access)
	if err != nil {
		return nil, fmt.Errorf("the fleet's keep in %s: %w", dir, err)
	}
	return k, nil
}

func open(dir string, now time.Time, access func(path string, mode uint32) error) (*Keep, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	k := &Keep{dir: dir, readable: 0o700}
	switch err := access(dir, writable); {
	case errors.Is(err, syscall.EROFS):
		k.fixed, k.readable = true, 0o777
	case err != nil && !errors.Is(err, syscall.EACCES):
		return nil, err
	default:
		k.fixed = err != nil
		owner := os.Geteuid()
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			owner = int(s.Uid)
		}
		switch {
		case info.Mode().Perm()&0o022 != 0:
			return nil, fmt.Errorf("other users may write there (chmod 700 %s)", dir)
		case k.fixed && owner == 0:
			k.readable = 0o740
		case os.Geteuid() != 0 && owner != os.Geteuid():
			return nil, fmt.Errorf("it is another user's (set %s to a folder of your own)", VariableDir)
		}
	}
	if !k.fixed {
		lock, err := flock.Wait(context.Background(), filepath.Join(dir, fileLock), nil) // held for an instant
		if err != nil {
			return nil, err
		}
		defer func() { _ = lock.Close() }()
	}
	if k.secret, err = k.kept(fileSecret, func() ([]byte, error) {
		b := make([]byte, secretSize)
		_, err := rand.Read(b)
		return b, err
	}); err != nil {
		return nil, err
	}
	if len(k.secret) != secretSize {
		return nil, fmt.Errorf("%s has %d bytes; want %d (remove it; all tokens end with it)", fileSecret, len(k.secret), secretSize)
	}
	text, err := k.kept(fileHub, func() ([]byte, error) { return newCertificate(now) })
	if err != nil {
		return nil, err
	}
	c, err := readCertificate(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (remove it; all join URLs end with it)", fileHub, err)
	}
	if !now.Before(c.Leaf.NotAfter) {
		if k.fixed {
			return nil, fmt.Errorf("the certificate in %s ended at %s: %w", fileHub, c.Leaf.NotAfter.Format(time.RFC3339), errFixed)
		}
		if text, err = newCertificate(now); err != nil {
			return nil, err
		}
		if err := write(filepath.Join(dir, fileHub), text); err != nil {
			return nil, err
		}
		if c, err = readCertificate(text); err != nil {
			return nil, err
		}
	}
	k.certificate, k.pin = c, PinOf(c.Certificate[0])
	return k, nil
}

// writable asks access(2) whether a folder can be written.
const writable = 2

// errFixed: the keep cannot be changed from here.
var errFixed = errors.New("weir cannot write there (weir fleet token makes what is needed where it can; copy that folder)")

// kept reads a file, and makes it first where it is missing. The lock is held.
func (k *Keep) kept(name string, create func() ([]byte, error)) ([]byte, error) {
	path := filepath.Join(k.dir, name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && k.fixed {
		return nil, fmt.Errorf("there is no %s, and %w", name, errFixed)
	}
	if errors.Is(err, fs.ErrNotExist) {
		b, err := create()
		if err != nil {
			return nil, err
		}
		return b, write(path, b)
	}
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm() & 0o077; mode&^k.readable != 0 {
		if k.fixed {
			return nil, fmt.Errorf("other users may read or write %s (its owner: chmod 640 %s)", name, path)
		}
		return nil, fmt.Errorf("other users may read %s (chmod 600 %s)", name, path)
	}
	return os.ReadFile(path)
}

// Pin returns the fingerprint of the hub's certificate.
func (k *Keep) Pin() Pin { return k.pin }

// TLS returns the settings of the hub's side of a connection.
func (k *Keep) TLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{k.certificate}, MinVersion: tls.VersionTLS13}
}

// The longest and the shortest life of a token.
const (
	MinLife = time.Second
	MaxLife = 5 * 365 * 24 * time.Hour
)

// New makes a token that ends after life, to the second, and writes down that it did.
func (k *Keep) New(life time.Duration, now time.Time) (Token, error) {
	if life < MinLife || life > MaxLife {
		return Token{}, fmt.Errorf("a token of %v (%v to %v)", life, MinLife, MaxLife)
	}
	id := make([]byte, idBytes)
	if _, err := rand.Read(id); err != nil {
		return Token{}, err
	}
	t := Token{id: hex.EncodeToString(id), ends: now.Add(life).Unix()}.seal(k.secret)
	err := k.change(func(all []Issued) ([]Issued, error) {
		// Those that ended long ago are not asked for any more.
		all = slices.DeleteFunc(all, func(i Issued) bool { return now.Sub(i.Ends) > remembered })
		if len(all) >= maxIssued {
			return nil, fmt.Errorf("there are %d tokens, the most that weir keeps (remove %s; all tokens end with it)", len(all), fileTokens)
		}
		return append(all, Issued{ID: t.id, Made: now.UTC().Truncate(time.Second), Ends: t.Ends()}), nil
	})
	if err != nil {
		return Token{}, fmt.Errorf("writing down a new token: %w", err)
	}
	return t, nil
}

// ownID is that of the token that Own makes; no token of New has it but by a chance of
// one in 2^64.
const ownID = "0000000000000000"

// Meeting reads the URL by which agents join. That of a fleet of this host and user is
// completed by what its keep holds.
func Meeting(text string, lookup func(name string) (string, bool)) (Address, error) {
	a, err := Parse(text)
	if err != nil || !a.IsOwn() {
		return a, err
	}
	dir, err := Dir(lookup)
	if err != nil {
		return a, err
	}
	keep, err := Open(dir, time.Now())
	if err != nil {
		return a, err
	}
	return keep.Own(a), nil
}

// Own completes the address of a hub of this host and user, where IsOwn is so: with the
// fingerprint of the certificate and a token that is in no list and does not end.
// Whoever can read this folder can make any token: this one gives nothing beyond that.
func (k *Keep) Own(a Address) Address {
	a.Pin, a.Token = k.pin, Token{id: ownID, ends: maxEnds}.seal(k.secret)
	return a
}

// Check reads the text of a token and says whether it is good at the instant now:
// ErrToken, ErrExpired or ErrRevoked where it is not. Only a token with the right MAC is
// told apart from others. Where the keep cannot be read none is good.
func (k *Keep) Check(text string, now time.Time) (Token, error) {
	t, err := ParseToken(text)
	if err != nil {
		return Token{}, err
	}
	if !hmac.Equal([]byte(t.Reveal()), []byte(t.seal(k.secret).Reveal())) {
		return Token{}, fmt.Errorf("%w: it was not made here", ErrToken)
	}
	return t, k.good(t, now)
}

// good says whether a token that was made here may be used.
func (k *Keep) good(t Token, now time.Time) error {
	if !now.Before(t.Ends()) {
		return fmt.Errorf("token %s %w at %s", t.id, ErrExpired, t.Ends().Format(time.RFC3339))
	}
	if t.id == ownID {
		return nil
	}
	all, err := k.List()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(i Issued) bool { return i.ID == t.id })
	if i < 0 {
		return fmt.Errorf("%w: %s is not in the list of those made here", ErrToken, t.id)
	}
	if all[i].Revoked {
		return fmt.Errorf("%w: %s", ErrRevoked, t.id)
	}
	return nil
}

// Revoke takes the token of that id back. Revoking twice is not an error; an id that
// is not in the list is ErrToken.
func (k *Keep) Revoke(id string) error {
	err := k.change(func(all []Issued) ([]Issued, error) {
		i := slices.IndexFunc(all, func(i Issued) bool { return i.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("%w: no token that was made here has this id", ErrToken)
		}
		all[i].Revoked = true
		return all, nil
	})
	if err != nil {
		return fmt.Errorf("revoking a token: %w", err)
	}
	return nil
}
