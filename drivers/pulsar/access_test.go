package pulsar

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// key is the server's key for signing tokens.
const key = "a key of thirty-two bytes or more"

func token(role string) string {
	part := func(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	signed := part([]byte(`{"alg":"HS256"}`)) + "." + part([]byte(`{"sub":"`+role+`"}`))
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(signed))
	return signed + "." + part(h.Sum(nil))
}

// TestTokensAndTLS uses a server that requires tokens, with and without TLS.
func TestTokensAndTLS(t *testing.T) {
	dir := t.TempDir()
	cert, certKey := trial.Certificate(t)
	ports := served.FreePorts(t, 4)
	conf := fmt.Sprintf(`clusterName=standalone
bindAddress=127.0.0.1
advertisedAddress=127.0.0.1
listeningInterface=lo
brokerServicePort=%d
webServicePort=%d
brokerServicePortTls=%d
webServicePortTls=%d
tlsCertificateFilePath=%s
tlsKeyFilePath=%s
managedLedgerDefaultEnsembleSize=1
managedLedgerDefaultWriteQuorum=1
managedLedgerDefaultAckQuorum=1
diskUsageThreshold=0.99
authenticationEnabled=true
authorizationEnabled=true
superUserRoles=admin
authenticationProviders=org.apache.pulsar.broker.authentication.AuthenticationProviderToken
tokenSecretKey=data:;base64,%s
brokerClientAuthenticationPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken
brokerClientAuthenticationParameters=token:%s
`, ports[0], ports[1], ports[2], ports[3], cert, certKey, base64.StdEncoding.EncodeToString([]byte(key)), token("admin"))
	file := filepath.Join(dir, "standalone.conf")
	must.Do(t, os.WriteFile(file, []byte(conf), 0o600))
	for name, value := range map[string]string{
		"PULSAR_STANDALONE_CONF": file, "PULSAR_LOG_DIR": dir, "PULSAR_LOG_LEVEL": "warn", "PULSAR_LOG_ROOT_LEVEL": "warn",
		"PULSAR_MEM": "-Xms64m -Xmx384m -XX:MaxDirectMemorySize=384m", "PULSAR_GC": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1", "PULSAR_GC_LOG": "-Xlog:disable",
	} {
		t.Setenv(name, value)
	}
	at := func(i int) string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(ports[i])) }
	plain := []string{"address", at(0), "admin", at(1)}
	secure := []string{"address", "pulsar+ssl://" + at(2), "admin", "https://" + at(3), "tls.ca", cert}
	served.Start(t, Definition(), served.Spec{
		Program: "pulsar",
		Args: []string{
			"standalone", "--no-functions-worker", "--no-stream-storage", "--advertised-address", "127.0.0.1",
			"--metadata-dir", filepath.Join(dir, "metadata"), "--bookkeeper-dir", filepath.Join(dir, "bookkeeper"),
		},
		Ready: func() error {
			cfg, err := trial.Configure(Definition(), nil, append(plain, "token", token("admin"))...)
			if err != nil {
				return err
			}
			c, err := driver.Open(t.Context(), Definition(), cfg, driver.Run{ID: "ready"})
			if err == nil {
				d := trial.Plain("ready")
				err = errors.Join(c.Declare(t.Context(), d), c.Delete(t.Context(), d), c.Close(t.Context()))
			}
			return err
		},
	})
	for _, way := range [][]string{plain, secure} {
		c := open(t, 1, nil, append(way, "token", token("admin"))...)
		p, f := trial.Producer(t, c, "d")
		if n := put(t, p, f, 3); n != 3 {
			t.Errorf("%v: %d of 3 confirmed", way, n)
		}
		for _, wrong := range []string{"", "secret", token("admin") + "x"} {
			_, err := try(t, driver.Run{}, nil, append(way, "token", wrong)...)
			if !errors.Is(err, driver.ErrAuth) || wrong != "" && strings.Contains(err.Error(), wrong) {
				t.Errorf("%v, token %q: %v", way, wrong, err)
			}
		}
	}
	// The driver queries the web service first, so this tests only the broker's own port.
	c := open(t, 1, nil, append(plain, "token", token("admin"))...)
	inside := driver.Inside(c).(*conn)
	inside.link.auth = nil
	trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{"d"}}, "a producer without a token", driver.ErrAuth, "")
	if _, err := try(t, driver.Run{}, nil, append(secure[:4:4], "token", token("admin"), "timeout", "2s")...); !errors.Is(err, driver.ErrUnreachable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an authority that is not trusted: %v", err)
	}
}
