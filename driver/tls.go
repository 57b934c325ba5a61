package driver

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLSFiles returns the settings for TLS 1.2 and later that a driver's options tls.ca,
// tls.cert, tls.key and tls.insecure ask for; it reads the files: the certificate authorities
// of the file ca instead of the host's, and the client's certificate of cert and
// its key. An empty name leaves the file out. insecure checks no server. The
// error is an *OptionError, of tls.ca or tls.cert.
func TLSFiles(ca, cert, key string, insecure bool) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, &OptionError{Name: "tls.ca", Err: err}
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &OptionError{Name: "tls.ca", Err: fmt.Errorf("%s holds no certificate", ca)}
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, &OptionError{Name: "tls.cert", Err: err}
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
