package admission

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// A Pin is the SHA-256 of a certificate in DER, as printed by openssl x509 -fingerprint -sha256. The zero
// value is not a pin.
type Pin [sha256.Size]byte

// PinOf returns the pin of a certificate in DER.
func PinOf(der []byte) Pin { return sha256.Sum256(der) }

const pinPrefix = "sha256:"

// String returns sha256: and 64 hexadecimal digits.
func (p Pin) String() string { return pinPrefix + hex.EncodeToString(p[:]) }

// IsZero reports whether there is no pin.
func (p Pin) IsZero() bool { return p == Pin{} }

// ParsePin parses what String returns, in either case, and with colons between the bytes as openssl prints
// them.
func ParsePin(s string) (Pin, error) {
	digits, ok := strings.CutPrefix(s, pinPrefix)
	b, err := hex.DecodeString(strings.ReplaceAll(digits, ":", ""))
	if !ok || err != nil || len(b) != len(Pin{}) {
		return Pin{}, errors.New("is not sha256: and 64 hexadecimal digits")
	}
	if Pin(b).IsZero() {
		return Pin{}, errors.New("is all zeros")
	}
	return Pin(b), nil
}

// TLS returns an agent's TLS settings for the server with exactly this certificate. Another certificate is
// ErrPin, with both fingerprints.
func (p Pin) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// VerifyConnection is stricter: it accepts one certificate only.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return fmt.Errorf("%w: the server has none", ErrPin)
			}
			if got := PinOf(s.PeerCertificates[0].Raw); got != p {
				return fmt.Errorf("%w: the server's is %s; want %s, which the join URL names", ErrPin, got, p)
			}
			return nil
		},
	}
}

// certificateLife is the validity of a hub's certificate.
const certificateLife = 5 * 365 * 24 * time.Hour

// newCertificate creates a certificate and its key, both in PEM. Its fingerprint identifies it: the names
// in it do not matter.
func newCertificate(now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	c := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "weir fleet"},
		NotBefore:    now.Add(-time.Hour), // for clock differences
		NotAfter:     now.Add(certificateLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...), nil
}

// readCertificate parses what newCertificate returned.
func readCertificate(text []byte) (tls.Certificate, error) {
	c, err := tls.X509KeyPair(text, text)
	if err != nil {
		return tls.Certificate{}, err
	}
	if c.Leaf == nil {
		c.Leaf, err = x509.ParseCertificate(c.Certificate[0])
	}
	return c, err
}
