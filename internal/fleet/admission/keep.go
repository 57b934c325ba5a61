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

// VariableDir is the environment variable for the keep's folder.
const VariableDir = "WEIR_FLEET_DIR"

// StateDir returns the folder for a coordinator's mutable state: the keep's, or weir/fleet in the user's
// state folder if the keep is not writable.
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

// Dir returns the keep's folder: VariableDir, or weir/fleet in the user's state folder. It does not access
// it.
func Dir(lookup func(name string) (string, bool)) (string, error) {
	for _, x := range []struct{ name, below string }{{VariableDir, ""}, {"XDG_STATE_HOME", "weir/fleet"}, {"HOME", ".local/state/weir/fleet"}} {
		dir, ok := lookup(x.name)
		if !ok || dir == "" {
			continue
		}
		if !filepath.IsAbs(dir) {
			if x.name == "XDG_STATE_HOME" {
				continue // required by the XDG specification
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
	fileSecret = "secret"      // the key of the tokens
	fileTokens = "tokens.json" // the created ones
	fileLock   = "lock"
)

const secretSize = 32

// A Keep is the folder with the secrets of a fleet on the coordinator's host. Its methods may be called
// from any goroutine, and by several processes at once: mutable data is read anew each time, and changed
// under a lock.
type Keep struct {
	dir         string
	fixed       bool        // read-only from here
	readable    fs.FileMode // file permissions that others may have
	certificate tls.Certificate
	pin         Pin
	secret      []byte
}

// Open opens the keep in a folder, and creates what is missing: the folder, readable by its owner only; a
// certificate valid for 5 years, renewed after it has expired; the key of the tokens. It refuses a folder
// that others can change, or with files that others can read.
//
// A folder that this process cannot write, such as a mounted one, must be complete. On a file system
// mounted read-only nobody changes it, and whoever mounted it chose its readers. Elsewhere it must be
// root's, who may let a group read the files.
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
		lock, err := flock.Wait(context.Background(), filepath.Join(dir, fileLock), nil) // held only briefly
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

// writable is W_OK of access(2).
const writable = 2

// errFixed says that the keep cannot be changed from here.
var errFixed = errors.New("weir cannot write there (weir fleet token makes what is needed where it can; copy that folder)")

// kept reads a file, creating it if missing. The lock must be held.
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

// TLS returns the hub's TLS settings.
func (k *Keep) TLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{k.certificate}, MinVersion: tls.VersionTLS13}
}

// The longest and the shortest life of a token.
const (
	MinLife = time.Second
	MaxLife = 5 * 365 * 24 * time.Hour
)

// New creates a token that expires after life, to the second, and adds it to the list.
func (k *Keep) New(life time.Duration, now time.Time) (Token, error) {
	return k.NewWhile("", life, now)
}

// NewWhile is New for a token that also ends with the lock of a file (flock), at its absolute path: with the process
// that has locked it.
func (k *Keep) NewWhile(while string, life time.Duration, now time.Time) (Token, error) {
	if life < MinLife || life > MaxLife {
		return Token{}, fmt.Errorf("a token of %v (%v to %v)", life, MinLife, MaxLife)
	}
	id := make([]byte, idBytes)
	if _, err := rand.Read(id); err != nil {
		return Token{}, err
	}
	t := Token{id: hex.EncodeToString(id), ends: now.Add(life).Unix()}.seal(k.secret)
	err := k.change(func(all []Issued) ([]Issued, error) {
		// Drop tokens that expired long ago.
		all = slices.DeleteFunc(all, func(i Issued) bool { return now.Sub(i.Ends) > remembered })
		if len(all) >= maxIssued {
			return nil, fmt.Errorf("there are %d tokens, the most that weir keeps (remove %s; all tokens end with it)", len(all), fileTokens)
		}
		return append(all, Issued{ID: t.id, Made: now.UTC().Truncate(time.Second), Ends: t.Ends(), While: while}), nil
	})
	if err != nil {
		return Token{}, fmt.Errorf("writing down a new token: %w", err)
	}
	return t, nil
}

// ownID is the ID of Own's token; New creates it with probability 2^-64.
const ownID = "0000000000000000"

// Meeting parses the URL by which agents join, and completes that of a fleet of this host and user from its
// keep.
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

// Own completes the address of a hub of this host and user, if IsOwn: with the certificate's fingerprint
// and an unlisted token that does not expire. Whoever can read this folder can make any token, so this
// grants nothing more.
func (k *Keep) Own(a Address) Address {
	a.Pin, a.Token = k.pin, Token{id: ownID, ends: maxEnds}.seal(k.secret)
	return a
}

// Check parses a token and checks that it is valid at now: otherwise the error is ErrToken, ErrExpired or
// ErrRevoked. Without the right MAC all errors are ErrToken. If the keep cannot be read no token is valid.
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

// good checks that a token created here may be used.
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
	if all[i].Ended() {
		return fmt.Errorf("token %s %w with the weir that made it for its agents", t.id, ErrExpired)
	}
	return nil
}

// Revoke revokes the token with that ID. Revoking twice is not an error; an ID that is not in the list is
// ErrToken.
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
