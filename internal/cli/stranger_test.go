package cli

import (
	ctls "crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
)

// A client at a server of another protocol, or without TLS at a TLS server, is told what answers there,
// with no advice that assumes an unused port.
func TestAServerOfAnotherSystemIsNamed(t *testing.T) {
	t.Parallel()
	nats := strings.TrimPrefix(natsdtest.Start(t, func(*server.Options) {}).ClientURL(), "nats://")
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshakes that fail
	secure.StartTLS()
	t.Cleanup(secure.Close)
	tls := secure.Listener.Addr().String()
	strict := httptest.NewUnstartedServer(http.NotFoundHandler())
	strict.Config.ErrorLog = secure.Config.ErrorLog
	strict.TLS = &ctls.Config{ClientAuth: ctls.RequireAnyClientCert}
	strict.StartTLS()
	t.Cleanup(strict.Close)
	mutual := strict.Listener.Addr().String()
	for _, c := range []struct{ driver, at, says string }{
		{"kafka", nats, "the server at " + nats + " speaks NATS, without TLS)"},
		{"kestrel", nats, "the server at " + nats + " speaks NATS, without TLS)"},
		{"rabbitmq-stream", nats, "the server at " + nats + " speaks NATS, without TLS)"},
		{"redis-streams", tls, "the server at " + tls + " expects TLS: set tls.ca to its authority's file, or tls.insecure=yes)"},
		{"nats", tls, "the server at " + tls + " expects TLS: set tls.ca to its authority's file, or tls.insecure=yes)"},
		{"kafka", "tls://" + tls, "(set tls.ca to the file of the authority of " + tls + ", or tls.insecure=yes)"},
		{"kafka tls.insecure=yes", "tls://" + mutual, "(the server at " + mutual + " demands a client's certificate of an authority that it knows: set tls.cert and tls.key)"},
		{"redis-streams tls.insecure=yes", mutual, "(the server at " + mutual + " demands a client's certificate of an authority that it knows: set tls.cert and tls.key)"},
		{"kafka tls.insecure=yes", "tls://" + tls, "(a server answers at " + tls + ", over TLS)"},
		{"rabbitmq tls.insecure=yes", "amqps://" + tls, "(a server answers at " + tls + ", over TLS)"},
	} {
		t.Run(c.driver+" "+c.at, func(t *testing.T) {
			t.Parallel()
			stderr := &watch{}
			name, option, set := strings.Cut(c.driver, " ")
			args := []string{"run", "--driver", name, "--address", c.at, "--rate", "10", "--measure", "1s", "--out", "r"}
			if set {
				args = append(args, "--option", option)
			}
			code := Main(t.Context(), World{
				Args: args, Stdout: &watch{}, Stderr: stderr, Drivers: all.Definitions(), Dir: t.TempDir(),
				Env: func(string) (string, bool) { return "", false },
			})
			if code != int(Unreachable) || !strings.Contains(stderr.String(), c.says) || strings.Contains(stderr.String(), "check the address") {
				t.Errorf("exit code %d, said %q; want %d, %q", code, stderr, Unreachable, c.says)
			}
		})
	}
}
