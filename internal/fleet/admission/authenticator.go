package admission

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/buildinfo"
	"github.com/weirmq/weir/internal/placement"
)

// Limits of an authenticator's memory.
const (
	NonceLife   = 30 * time.Second
	Outstanding = 4096 // nonces
	nonceSize   = 16   // B
)

// An Authenticator is the coordinator's side of joining. Its methods may be called from any goroutine and
// do not block.
type Authenticator struct {
	keep    *Keep
	version string
	now     func() time.Time

	mu     sync.Mutex
	nonces map[string]invitation // unused ones
}

type invitation struct {
	agent string
	ends  time.Time
}

// NewAuthenticator returns the authenticator of a coordinator of that version. Agents prove a token of the
// keep; a nil keep requires none. A nil now is time.Now.
func NewAuthenticator(keep *Keep, version string, now func() time.Time) *Authenticator {
	if now == nil {
		now = time.Now
	}
	return &Authenticator{keep: keep, version: version, now: now, nonces: map[string]invitation{}}
}

// Challenge returns the nonce with which the named agent may join, once and within 30 s. An invalid name is
// ErrMalformed; with 4096 nonces outstanding it is ErrBusy.
func (d *Authenticator) Challenge(agent string) (nonce string, err error) {
	if err := placement.CheckName(agent); err != nil {
		return "", fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	b := make([]byte, nonceSize)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	nonce = hex.EncodeToString(b)
	now := d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.nonces) >= Outstanding {
		for n, i := range d.nonces {
			if !now.Before(i.ends) {
				delete(d.nonces, n)
			}
		}
	}
	if len(d.nonces) >= Outstanding {
		return "", fmt.Errorf("%w (%d)", ErrBusy, Outstanding)
	}
	d.nonces[nonce] = invitation{agent, now.Add(NonceLife)}
	return nonce, nil
}

// Admit decides whether the agent may join; otherwise the error is ErrMalformed, ErrVersion, ErrReplayed,
// ErrExpired, ErrToken or ErrRevoked. All but the first two consume the nonce.
func (d *Authenticator) Admit(j Request) error {
	if err := j.check(); err != nil {
		return err
	}
	if err := d.admit(&j); err != nil {
		return fmt.Errorf("agent %s: %w", j.Agent, err)
	}
	return nil
}

func (d *Authenticator) admit(j *Request) error {
	if err := Like(j.Version, d.version); err != nil {
		return err
	}
	now := d.now()
	d.mu.Lock()
	i, given := d.nonces[j.Nonce]
	delete(d.nonces, j.Nonce)
	d.mu.Unlock()
	switch {
	case !given || i.agent != j.Agent:
		return fmt.Errorf("%w: its nonce was used before, or not given to it", ErrReplayed)
	case !now.Before(i.ends):
		return fmt.Errorf("its nonce %w after %v", ErrExpired, NonceLife)
	case d.keep == nil:
		return nil
	case j.Proof == "":
		return fmt.Errorf("%w: it sends no proof", ErrToken)
	}
	t, err := parsePublic(j.TokenID)
	if err != nil {
		return err
	}
	t = t.seal(d.keep.secret)
	if !hmac.Equal([]byte(j.Proof), []byte(j.proof(t))) {
		return fmt.Errorf("%w: its proof is wrong", ErrToken)
	}
	return d.keep.good(t, now)
}

// Like returns ErrVersion if an agent's buildinfo.Identity differs from the coordinator's.
func Like(agent, coordinator string) error {
	if buildinfo.Same(agent, coordinator) {
		return nil
	}
	hint := ""
	if strings.Contains(agent, "@") && strings.Contains(coordinator, "@") {
		hint = " (builds without a revision must be the same file: copy one to all hosts)"
	}
	return fmt.Errorf("%w: the agent's is %q, the coordinator's %q%s", ErrVersion, agent, coordinator, hint)
}
