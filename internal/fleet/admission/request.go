package admission

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"unicode"

	"github.com/weirmq/weir/internal/placement"
)

// Limits of a join.
const (
	RequestSize = 64 << 10 // B, of the whole message
	AboutSize   = 32 << 10 // B, of the self-description
	NameSize    = 128      // B, of an agent's name or a version
	Labels      = 32
)

// A Request is the message by which an agent joins a fleet.
type Request struct {
	Agent   string            `json:"agent"`            // see placement.CheckName
	Version string            `json:"version"`          // of weir
	Labels  map[string]string `json:"labels,omitempty"` // to place parts of a run
	About   []byte            `json:"about,omitempty"`  // further self-description, opaque to this package
	Nonce   string            `json:"nonce"`            // from the coordinator
	TokenID string            `json:"token,omitempty"`  // the public part of the token
	Proof   string            `json:"proof,omitempty"`  // of possessing the token: see Prove
}

// Prove sets the join's proof: a MAC, keyed by the token, of everything else in the join. It does not
// contain the token. A zero token gives no proof.
func (j *Request) Prove(t Token) {
	j.TokenID, j.Proof = "", ""
	if t.IsZero() {
		return
	}
	j.TokenID = t.public()
	j.Proof = j.proof(t)
}

func (j *Request) proof(t Token) string {
	m := hmac.New(sha256.New, []byte(t.Reveal()))
	field(m, "weir fleet join 1")
	for _, s := range []string{j.Nonce, j.Agent, j.Version, j.TokenID} {
		field(m, s)
	}
	// A marshalled map has sorted keys.
	labels, err := json.Marshal(j.Labels)
	if err != nil || len(j.Labels) == 0 {
		labels = nil
	}
	field(m, string(labels))
	field(m, string(j.About))
	return hex.EncodeToString(m.Sum(nil))
}

// field hashes s such that no other list of fields gives the same bytes.
func field(h hash.Hash, s string) {
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(s))))
	h.Write([]byte(s))
}

// Encode returns the message; ErrMalformed where Decode would refuse it.
func (j *Request) Encode() ([]byte, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(j)
	if err == nil && len(b) > RequestSize {
		err = fmt.Errorf("%w: %d bytes (at most %d)", ErrMalformed, len(b), RequestSize)
	}
	return b, err
}

// Decode parses an untrusted message: of limited size, with exactly these fields within their limits.
// Anything else is ErrMalformed.
func Decode(b []byte) (Request, error) {
	if len(b) > RequestSize {
		return Request{}, fmt.Errorf("%w: %d bytes (at most %d)", ErrMalformed, len(b), RequestSize)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var j Request
	if err := d.Decode(&j); err != nil {
		return Request{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Request{}, fmt.Errorf("%w: there is more after it", ErrMalformed)
	}
	if err := j.check(); err != nil {
		return Request{}, err
	}
	return j, nil
}

// check checks the fields' limits.
func (j *Request) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
	}
	if err := placement.CheckName(j.Agent); err != nil {
		return bad("%w", err)
	}
	if j.Version == "" || !isText(j.Version) {
		return bad("the version is none (1 to %d printable characters)", NameSize)
	}
	if len(j.Labels) > Labels {
		return bad("%d labels (at most %d)", len(j.Labels), Labels)
	}
	for name, value := range j.Labels {
		if err := (placement.Label{Key: name, Value: value}).Check(); err != nil {
			return bad("%w", err)
		}
	}
	if len(j.About) > AboutSize {
		return bad("%d bytes about the agent (at most %d)", len(j.About), AboutSize)
	}
	if !isHex(j.Nonce, nonceSize) {
		return bad("the nonce is none")
	}
	if j.TokenID == "" && j.Proof == "" {
		return nil
	}
	if _, err := parsePublic(j.TokenID); err != nil || !isHex(j.Proof, sha256.Size) {
		return bad("the proof is none")
	}
	return nil
}

// isText reports whether s is short and printable.
func isText(s string) bool {
	return len(s) <= NameSize && !strings.ContainsFunc(s, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) })
}

// isHex reports whether s is that many bytes in lower-case hexadecimal.
func isHex(s string, bytes int) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == bytes && s == strings.ToLower(s)
}
