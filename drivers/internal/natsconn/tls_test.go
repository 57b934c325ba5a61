package natsconn

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
)

// runTLS starts a TLS server in the test process that requires client certificates.
func runTLS(t *testing.T, cert, key, client string) string {
	t.Helper()
	config := must.Get(server.GenTLSConfig(&server.TLSConfigOpts{CertFile: cert, KeyFile: key, CaFile: client, Verify: true, Timeout: 60}))(t)
	config.MinVersion = tls.VersionTLS12
	return natsdtest.Start(t, func(o *server.Options) {
		o.TLS, o.TLSVerify, o.TLSConfig, o.TLSTimeout = true, true, config, 60
	}).Addr().String()
}

func TestTLS(t *testing.T) {
	cert, key := trial.Certificate(t)
	mine, myKey := trial.Certificate(t)
	address, plain := runTLS(t, cert, key, mine), run(t)
	for _, c := range []struct {
		name, address string
		tls           driver.TLSOptions
		want          string // in the error; "": no error
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
