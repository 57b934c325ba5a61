package admission

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/nats-io/nkeys"
)

// A Self is the identity of one process at a hub: two key pairs that it creates at its start and keeps in
// memory only. One signs its connections, the other opens what is sealed for it. Its methods may be called
// from any goroutine.
type Self struct {
	sign, box nkeys.KeyPair
	id, key   string
}

// ErrSealed says that a message is not sealed for this process.
var ErrSealed = errors.New("not sealed for this process")

// NewSelf makes the keys of a process.
func NewSelf() (*Self, error) {
	s := &Self{}
	var err error
	if s.sign, err = nkeys.CreateUser(); err == nil {
		s.id, err = s.sign.PublicKey()
	}
	if err == nil {
		s.box, err = nkeys.CreateCurveKeys()
	}
	if err == nil {
		s.key, err = s.box.PublicKey()
	}
	if err != nil {
		return nil, fmt.Errorf("making the keys of this process: %w", err)
	}
	return s, nil
}

// ID is the public signing key, in letters and digits, as part of subjects. A hub lets a connection use the
// subjects of the ID that signed its nonce.
func (s *Self) ID() string { return s.id }

// Key is the public key by which others seal for this process.
func (s *Self) Key() string { return s.key }

// Sign signs a hub's nonce.
func (s *Self) Sign(nonce []byte) ([]byte, error) { return s.sign.Sign(nonce) }

// CheckSigned reports whether the process with that ID signed the nonce; signature is as a NATS client
// sends it. Anything else is ErrToken.
func CheckSigned(id, signature string, nonce []byte) error {
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || len(nonce) == 0 || !nkeys.IsValidPublicUserKey(id) {
		return fmt.Errorf("%w: the connection is not signed", ErrToken)
	}
	public, err := nkeys.FromPublicKey(id)
	if err == nil {
		err = public.Verify(nonce, raw)
	}
	if err != nil {
		return fmt.Errorf("%w: the connection is signed wrongly", ErrToken)
	}
	return nil
}

// CheckKey reports whether Seal can seal for a key.
func CheckKey(key string) bool { return nkeys.IsValidPublicCurveKey(key) }

// Seal encrypts a message for the process with that Key only (X25519, XSalsa20 and Poly1305), with an
// ephemeral key pair. The sender is anonymous.
func Seal(message []byte, key string) ([]byte, error) {
	once, err := nkeys.CreateCurveKeys()
	if err != nil {
		return nil, fmt.Errorf("sealing a message: %w", err)
	}
	defer once.Wipe()
	sender, err := once.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("sealing a message: %w", err)
	}
	b, err := once.Seal(message, key)
	if err != nil {
		return nil, fmt.Errorf("sealing a message: %w", err)
	}
	return append([]byte(sender), b...), nil
}

// Overhead is how many bytes longer Seal makes a message.
const Overhead = keySize + 4 + 24 + 16 // the sender's key, the version, the nonce, the MAC

// keySize is the length of a key as text.
const keySize = 56

// Open decrypts a message that Seal sealed for this process; otherwise ErrSealed.
func (s *Self) Open(sealed []byte) ([]byte, error) {
	if len(sealed) < Overhead {
		return nil, ErrSealed
	}
	b, err := s.box.Open(sealed[keySize:], string(sealed[:keySize]))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSealed, err)
	}
	return b, nil
}
