package cli

import (
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

// TestAServerOfAnotherSystemIsNamed: a client at a server of another protocol, or without
// TLS at one that expects it, is told what answers there, and nothing is advised that
// supposes an empty port.
func TestAServerOfAnotherSystemIsNamed(t *testing.T) {
	t.Parallel()
	nats := strings.TrimPrefix(natsdtest.Start(t, func(*server.Options) {}).ClientURL(), "nats://")
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshakes that fail
	secure.StartTLS()
	t.Cleanup(secure.Close)
	tls := secure.Listener.Addr().String()
	for _, c := range []struct{ driver, at, says string }{
		{"kafka", nats, "the server at " + nats + " speaks NATS, without TLS)"},
		{"kestrel", nats, "the server at " + nats + " speaks NATS, without TLS)"},
		{"rabbitmq-stream", nats, "the server at " + nats + " speaks NATS, without TLS)"},
		{"redis-streams", tls, "the server at " + tls + " expects TLS: set tls.ca to its authority's file, or tls.insecure=yes)"},
		{"nats", tls, "the server at " + tls + " expects TLS: set tls.ca to its authority's file, or tls.insecure=yes)"},
		{"kafka", "tls://" + tls, "(set tls.ca to the file of the authority of " + tls + ", or tls.insecure=yes)"},
	} {
		t.Run(c.driver+" "+c.at, func(t *testing.T) {
			t.Parallel()
			stderr := &watch{}
			code := Main(t.Context(), World{
				Args:   []string{"run", "--driver", c.driver, "--address", c.at, "--rate", "10", "--measure", "1s", "--out", "r"},
				Stdout: &watch{}, Stderr: stderr, Drivers: all.Definitions(), Dir: t.TempDir(),
				Env: func(string) (string, bool) { return "", false },
			})
			if code != int(Unreachable) || !strings.Contains(stderr.String(), c.says) || strings.Contains(stderr.String(), "check the address") {
				t.Errorf("exit code %d, said %q; want %d, %q", code, stderr, Unreachable, c.says)
			}
		})
	}
}
