package admission

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
)

// A Token admits its bearer to the fleet until it expires. It prints, logs and marshals as "***"; only
// Reveal returns its text, which needs no escaping in a URL.
type Token struct {
	driver.Secret
	id   string
	ends int64 // Unix time, s
}

// Sizes of a token's parts.
const (
	idBytes   = 8
	maxEnds   = 1 << 40 // s: some 34,000 years
	tokenSize = 128     // maximum as text
)

// ID identifies the token where it must not be shown. It is not secret.
func (t Token) ID() string { return t.id }

// Ends is when the token expires; it is valid before that.
func (t Token) Ends() time.Time { return time.Unix(t.ends, 0).UTC() }

// public is the public part of the token, which its MAC covers.
func (t Token) public() string { return t.id + "." + strconv.FormatInt(t.ends, 10) }

// ParseToken parses a token without checking its validity. Any fault is ErrToken; the text is not shown.
func ParseToken(text string) (Token, error) {
	public, mac, ok := cutLast(text)
	if !ok || len(text) > tokenSize {
		return Token{}, fmt.Errorf("%w: it does not have a token's form", ErrToken)
	}
	t, err := parsePublic(public)
	if err != nil {
		return Token{}, err
	}
	if b, err := base64.RawURLEncoding.Strict().DecodeString(mac); err != nil || len(b) != sha256.Size {
		return Token{}, fmt.Errorf("%w: it does not have a token's form", ErrToken)
	}
	t.Secret = driver.NewSecret(text, "")
	return t, nil
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

// parsePublic parses the public part of a token.
func parsePublic(text string) (Token, error) {
	id, ends, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(ends, 10, 64)
	if err != nil || !isID(id) || n <= 0 || n > maxEnds || ends != strconv.FormatInt(n, 10) {
		return Token{}, fmt.Errorf("%w: it does not have a token's form", ErrToken)
	}
	return Token{id: id, ends: n}, nil
}

// isID reports whether s is a token ID.
func isID(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == idBytes && s == strings.ToLower(s)
}

// seal signs a token with a keep's key.
func (t Token) seal(secret []byte) Token {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte("weir fleet token 1\n" + t.public()))
	t.Secret = driver.NewSecret(t.public()+"."+base64.RawURLEncoding.EncodeToString(m.Sum(nil)), "")
	return t
}
