package natsconn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
)

// certificate writes a certificate for 127.0.0.1 that has signed itself, and its
// key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	signed, err := x509.CreateCertificate(rand.Reader, &c, &c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// runTLS starts a server in the test process that speaks TLS, and wants a
// certificate from its clients.
func runTLS(t *testing.T, cert, key, client string) string {
	t.Helper()
	config, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: cert, KeyFile: key, CaFile: client, Verify: true, Timeout: 60})
	if err != nil {
		t.Fatal(err)
	}
	config.MinVersion = tls.VersionTLS12
	return natsdtest.Start(t, func(o *server.Options) {
		o.TLS, o.TLSVerify, o.TLSConfig, o.TLSTimeout = true, true, config, 60
	}).Addr().String()
}

func TestTLS(t *testing.T) {
	cert, key := certificate(t)
	mine, myKey := certificate(t)
	address, plain := runTLS(t, cert, key, mine), run(t)
	for _, c := range []struct {
		name, address string
		tls           driver.TLSOptions
		want          string // in the error; "": none
	}{
		{"right certificates", address, driver.TLSOptions{CA: cert, Cert: mine, Key: myKey}, ""},
		{"nothing is said of TLS, and the server wants it", address, driver.TLSOptions{}, "certificate signed by unknown authority"},
		{"the server's certificate is not trusted", address, driver.TLSOptions{CA: mine, Cert: mine, Key: myKey}, "failed to verify certificate"},
		{"the server's certificate is not looked at", address, driver.TLSOptions{Insecure: true, Cert: mine, Key: myKey}, ""},
		{"no certificate of one's own", address, driver.TLSOptions{CA: cert}, "tls"},
		{"a certificate that the server does not trust", address, driver.TLSOptions{CA: cert, Cert: cert, Key: key}, "tls"},
		{"a scheme that asks for TLS", "tls://" + address, driver.TLSOptions{CA: cert, Cert: mine, Key: myKey}, ""},
		{"a server without TLS", plain, driver.TLSOptions{CA: cert}, "secure connection not available"},
		{"a server without TLS, by the scheme", "tls://" + plain, driver.TLSOptions{}, "secure connection not available"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Defaults()
			o.Address, o.TLS = []string{c.address}, c.tls
			link, err := Connect(t.Context(), &o, driver.Run{ID: "t"}, "test", Events{})
			if err == nil {
				defer func() { _ = link.Close(t.Context()) }()
			}
			switch {
			case c.want == "" && err != nil:
				t.Errorf("Connect: %v", err)
			case c.want != "" && (!errors.Is(err, driver.ErrUnreachable) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("Connect: %v; want ErrUnreachable with %q", err, c.want)
			}
		})
	}
}
