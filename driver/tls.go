package driver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/weirmq/weir/internal/userfile"
)

// mostPEM bounds a file of certificates or of a key. The authorities that a host
// trusts, all in one file, take some 200 KiB.
const mostPEM = 4 << 20

// TLSOptions are the options of TLS that drivers share, as a field
//
//	TLS driver.TLSOptions `option:"tls"`
//
// of a Config. Setting any asks for TLS: what is not the zero value does.
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

// Config is TLSFiles of the options.
func (o TLSOptions) Config() (*tls.Config, error) { return TLSFiles(o.CA, o.Cert, o.Key, o.Insecure) }

// TLSFiles returns the settings for TLS 1.2 and later that a driver's options tls.ca,
// tls.cert, tls.key and tls.insecure ask for; it reads the files: the certificate authorities
// of the file ca instead of the host's, and the client's certificate of cert and
// its key. An empty name leaves the file out. insecure checks no server. The
// error is an *OptionError, of tls.ca, tls.cert or tls.key.
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
