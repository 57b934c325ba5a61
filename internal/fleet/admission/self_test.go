package admission

import (
	"bytes"
	"encoding/base64"
	"errors"
	"testing"

	"github.com/weirmq/weir/internal/must"
)

// self makes the keys of a process.
func self(t *testing.T) *Self {
	t.Helper()
	return must.Get(NewSelf())(t)
}

// Only the recipient can open it, it reveals nothing and cannot be changed, and sealing twice gives
// different bytes.
func TestSealedMessageOpensForRecipientOnly(t *testing.T) {
	a, b := self(t), self(t)
	message := bytes.Repeat([]byte("password "), 100)
	sealed := must.Get(Seal(message, a.Key()))(t)
	if got, err := a.Open(sealed); err != nil || !bytes.Equal(got, message) {
		t.Errorf("opened: %q, %v", got, err)
	}
	if _, err := b.Open(sealed); !errors.Is(err, ErrSealed) {
		t.Errorf("another opens it: %v", err)
	}
	if len(sealed) != len(message)+Overhead || bytes.Contains(sealed, []byte("pass")) {
		t.Errorf("%d bytes of %d, the overhead is %d", len(sealed), len(message), Overhead)
	}
	if again, err := Seal(message, a.Key()); err != nil || bytes.Equal(again[:keySize], sealed[:keySize]) || bytes.Contains(again, sealed[keySize+28:]) {
		t.Errorf("sealed again it is the same, %v", err)
	}
	for at := range sealed {
		if at < keySize+30 || at%97 == 0 || at > len(sealed)-20 {
			spoilt := bytes.Clone(sealed)
			spoilt[at] ^= 1
			if _, err := a.Open(spoilt); !errors.Is(err, ErrSealed) {
				t.Errorf("with byte %d changed: %v", at, err)
			}
		}
	}
	for _, n := range []int{0, 1, keySize, Overhead - 1, Overhead, len(sealed) - 1} {
		if _, err := a.Open(sealed[:n]); !errors.Is(err, ErrSealed) {
			t.Errorf("its first %d bytes: %v", n, err)
		}
	}
	for _, key := range []string{"", "X", a.ID(), a.Key()[1:]} {
		if _, err := Seal(message, key); err == nil || CheckKey(key) {
			t.Errorf("sealed for the key %q", key)
		}
	}
}

// TestConnectionSignatureMatchesItsKey: by its key, and for this nonce.
func TestConnectionSignatureMatchesItsKey(t *testing.T) {
	a, b := self(t), self(t)
	nonce := []byte("a nonce of the hub")
	sign := func(s *Self, nonce []byte) string {
		raw := must.Get(s.Sign(nonce))(t)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	if err := CheckSigned(a.ID(), sign(a, nonce), nonce); err != nil {
		t.Errorf("as it should be: %v", err)
	}
	for what, err := range map[string]error{
		"by another":       CheckSigned(a.ID(), sign(b, nonce), nonce),
		"of another nonce": CheckSigned(a.ID(), sign(a, []byte("another")), nonce),
		"without a nonce":  CheckSigned(a.ID(), sign(a, nil), nil),
		"unsigned":         CheckSigned(a.ID(), "", nonce),
		"no base64":        CheckSigned(a.ID(), "%", nonce),
		"by nobody":        CheckSigned("", sign(a, nonce), nonce),
		"by a key to seal": CheckSigned(a.Key(), sign(a, nonce), nonce),
		"by a wildcard":    CheckSigned("*", sign(a, nonce), nonce),
	} {
		if !errors.Is(err, ErrToken) {
			t.Errorf("%s: %v; want %v", what, err, ErrToken)
		}
	}
}
