// Package admission decides who may join a fleet, and with whom an agent dares to
// speak.
//
// The coordinator's host has a Keep: a folder with the certificate of its hub and the
// secret by which its tokens are made. A Token is an id, an end, and a MAC of both. It is
// what opens the hub's door to a connection, and it proves a Request, once: the
// coordinator's Authenticator gives a nonce, and the agent makes a proof from it. So a recorded
// join is useless to a process that replays it.
//
// An agent is told all it needs in one URL (Address): where the hub is, the SHA-256 of
// its certificate, and a token. It compares the certificate with that fingerprint and
// with nothing else, so that no authority, name or date matters.
//
// On the host and by the user of the coordinator an agent needs no more than where the
// hub is: it opens the same Keep, which only that user can read.
//
// A process is known by keys that it makes when it starts (Self): a hub gives it the
// subjects of its own, and what is meant for it alone is sealed for it.
//
// A token that ends or is revoked does not put out agents that are in. It is checked when
// a connection is made, and when an agent joins.
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
