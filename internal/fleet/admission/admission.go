// Package admission decides who may join a fleet, and lets agents verify the coordinator.
//
// The coordinator's host has a Keep: a folder with the certificate of its hub and the key of its tokens. A
// Token is an ID, an expiry, and a MAC of both. It authenticates a connection to the hub, and proves a
// Request once: the coordinator's Authenticator issues a nonce from which the agent makes a proof, so a
// recorded join cannot be replayed.
//
// An agent gets everything in one URL (Address): the hub's address, the SHA-256 of its certificate, and a
// token. It compares the certificate with that fingerprint only, so no authority, name or date matters.
//
// For agents of the same host and user as the coordinator the hub's address is enough: they open the same
// Keep, which only that user can read.
//
// A process is identified by keys that it creates at its start (Self): a hub grants it subjects of its own,
// and messages for it alone are sealed with its key.
//
// An expired or revoked token does not disconnect agents. It is checked when a connection is made, and when
// an agent joins.
package admission

import "errors"

// The reasons to refuse.
var (
	// ErrToken says that this is not a token, or not one of this keep.
	ErrToken = errors.New("wrong token")
	// ErrExpired says that the token, or the nonce of a join, has expired.
	ErrExpired = errors.New("expired")
	// ErrRevoked says that the token was revoked.
	ErrRevoked = errors.New("token revoked")
	// ErrPin says that the server's certificate is not the announced one.
	ErrPin = errors.New("wrong certificate")
	// ErrScheme says that the server uses TLS and the URL does not, or the reverse.
	ErrScheme = errors.New("wrong scheme of the join URL")
	// ErrReplayed says that the nonce of the join was used, or never given to its agent.
	ErrReplayed = errors.New("replayed join")
	// ErrVersion says that agent and coordinator are of different versions or builds.
	ErrVersion = errors.New("another version of weir")
	// ErrMalformed says that an agent's message is invalid.
	ErrMalformed = errors.New("malformed join")
	// ErrBusy says that too many joins are in progress.
	ErrBusy = errors.New("too many joins at once")
)

// Port is a hub's default port.
const Port = 7622
