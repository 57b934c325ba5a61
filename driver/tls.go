package driver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/weirmq/weir/internal/userfile"
)

// mostPEM bounds the size of a file with certificates or a key. A host's trusted authorities in one
// file take some 200 KiB.
const mostPEM = 4 << 20

// TLSOptions are the TLS options that drivers share, as a field
//
//	TLS driver.TLSOptions `option:"tls"`
//
// of a Config. Setting any to a nonzero value enables TLS.
type TLSOptions struct {
	CA       string `option:"ca" file:"yes" help:"File of the authorities trusted (PEM); none: the system's."`
	Cert     string `option:"cert" file:"yes" help:"File of the client's certificate (PEM)."`
	Key      string `option:"key" file:"yes" help:"File of the client's key (PEM)."`
	Insecure bool   `option:"insecure" help:"Do not verify the server's certificate."`
}

// Validate reports a certificate without its key, or a key without its
// certificate, as an *OptionError. It reads no files.
func (o TLSOptions) Validate() error {
	if (o.Cert == "") != (o.Key == "") {
		return &OptionError{Name: "tls.cert", Err: errors.New("tls.cert and tls.key go together")}
	}
	return nil
}

// Config returns the settings for TLS; see TLSFiles.
func (o TLSOptions) Config() (*tls.Config, error) { return TLSFiles(o.CA, o.Cert, o.Key, o.Insecure) }

// TLSFiles returns settings for TLS 1.2 and later from a driver's options tls.ca, tls.cert, tls.key
// and tls.insecure. It reads the files: ca holds the certificate authorities to use instead of the
// host's, cert and key the client's certificate and its key. Empty names are skipped. insecure
// disables verification of the server. The error is an *OptionError for tls.ca, tls.cert or
// tls.key.
func TLSFiles(ca, cert, key string, insecure bool) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure}
	if ca != "" {
		pem, err := userfile.Read(ca, mostPEM)
		if err != nil {
			return nil, &OptionError{Name: "tls.ca", Err: err}
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &OptionError{Name: "tls.ca", Err: fmt.Errorf("%s holds no certificate", ca)}
		}
	}
	if cert != "" {
		certPEM, err := userfile.Read(cert, mostPEM)
		if err != nil {
			return nil, &OptionError{Name: "tls.cert", Err: err}
		}
		keyPEM, err := userfile.Read(key, mostPEM)
		if err != nil {
			return nil, &OptionError{Name: "tls.key", Err: err}
		}
		pair, err := tls.X509KeyPair(certPEM, keyPEM)
		if err != nil {
			return nil, &OptionError{Name: "tls.cert", Err: fmt.Errorf("%s and %s: %w", cert, key, err)}
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
