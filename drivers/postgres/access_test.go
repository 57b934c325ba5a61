package postgres

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// TestConnectionPermissions uses one server that requires passwords, certificates and TLS.
func TestConnectionPermissions(t *testing.T) {
	s := served.Up(t, Definition(), 1)
	ca, key := authority(t)
	rows := execute(t, s, `CREATE ROLE reader LOGIN PASSWORD 'right'; SHOW hba_file; SHOW data_directory`)
	hba, data := rows[0][0], rows[1][0]
	files := map[string][]byte{}
	files["server.crt"], files["server.key"] = certificate(t, ca, key, "server")
	files["root.crt"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})
	owner := must.Get(os.Stat(filepath.Join(data, "PG_VERSION")))(t)
	id := owner.Sys().(*syscall.Stat_t)
	for name, b := range files {
		name = filepath.Join(data, name)
		must.Do(t, os.WriteFile(name, b, 0o600))
		must.Do(t, os.Chown(name, int(id.Uid), int(id.Gid)))
	}
	rules := "host postgres reader all scram-sha-256\nhostssl postgres weir all cert\nhost all all all trust\n"
	must.Do(t, os.WriteFile(hba, []byte(rules), 0o600))
	execute(t, s, `CREATE ROLE weir LOGIN`)
	for _, set := range []string{"ssl_ca_file = 'root.crt'", "ssl = on"} {
		execute(t, s, `ALTER SYSTEM SET `+set)
	}
	execute(t, s, `SELECT pg_reload_conf()`)
	if !trial.Eventually(func() bool { return execute(t, s, `SHOW ssl`)[0][0] == "on" }) {
		t.Fatal("the server takes no TLS")
	}

	dir := t.TempDir()
	write := func(name string, b []byte) string {
		name = filepath.Join(dir, name)
		must.Do(t, os.WriteFile(name, b, 0o600))
		return name
	}
	root := write("ca.pem", files["root.crt"])
	mine, mineKey := certificate(t, ca, key, "weir")
	cert, certKey := write("weir.pem", mine), write("weir.key", mineKey)
	stranger, strangerKey := authority(t)
	other, otherKey := certificate(t, stranger, strangerKey, "weir")
	otherCert, otherCertKey := write("other.pem", other), write("other.key", otherKey)
	for _, c := range []struct {
		name    string
		options []string
		is      error // nil: it connects
		says    string
	}{
		{"a password", []string{"user", "reader", "password", "right"}, nil, ""},
		{"a wrong password", []string{"user", "reader", "password", "wr0ng"}, driver.ErrAuth, "password authentication failed"},
		{"no password", []string{"user", "reader"}, driver.ErrAuth, ""},
		{"a user that is not there", []string{"user", "nobody-at-all"}, driver.ErrAuth, "does not exist"},
		{"a database that is not there", []string{"database", "nosuch"}, driver.ErrUnsupported, `database "nosuch" does not exist`},
		{"TLS by an authority", []string{"tls.ca", root}, nil, ""},
		{"TLS without verifying", []string{"tls.insecure", "true"}, nil, ""},
		{"TLS by the host's authorities", []string{"tls.on", "true"}, driver.ErrUnreachable, "certificate"},
		{"a client's certificate", []string{"tls.ca", root, "tls.cert", cert, "tls.key", certKey, "user", "weir"}, nil, ""},
		{"a client's certificate of another authority", []string{"tls.ca", root, "tls.cert", otherCert, "tls.key", otherCertKey, "user", "weir"}, nil, "certificate"},
		{"no certificate where one is needed", []string{"tls.ca", root, "user", "weir"}, driver.ErrAuth, "certificate"},
		{"an authority that is not a file", []string{"tls.ca", dir + "/nosuch"}, nil, "tls.ca"},
		{"an authority that is not a certificate", []string{"tls.ca", certKey}, nil, "holds no certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.is != nil || c.says != "" {
				trial.Refuses(t, Definition(), s.Options, trial.Mistake{Name: "open", Set: c.options, Is: c.is, Says: c.says})
				return
			}
			trial.Opened(t, Definition(), driver.Run{}, s.Options, c.options...)
		})
	}
}

// authority creates a certificate authority.
func authority(t testing.TB) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	ca := must.Get(x509.ParseCertificate(der))(t)
	return ca, key
}

// certificate creates a certificate for name at 127.0.0.1, and returns it with its key (PEM).
func certificate(t testing.TB, ca *x509.Certificate, by *ecdsa.PrivateKey, name string) (cert, key []byte) {
	t.Helper()
	own := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, ca, &own.PublicKey, by))(t)
	b := must.Get(x509.MarshalPKCS8PrivateKey(own))(t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b})
}
