package protocheck

import (
	"bytes"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
)

// serve listens, handles each connection in a goroutine, and returns the address.
func serve(t *testing.T, one func(net.Conn)) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				one(c)
			}()
		}
	}()
	return l.Addr().String()
}

// answering returns a server that knows one opening message.
func answering(to, with string) func(net.Conn) {
	return func(c net.Conn) {
		b := make([]byte, most)
		if n, _ := c.Read(b); bytes.HasPrefix(b[:n], []byte(to)) {
			_, _ = io.WriteString(c, with)
		}
	}
}

// quiet disables a server's log of failed handshakes.
func quiet(s *httptest.Server) *httptest.Server {
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	return s
}

// TestServerIsIdentifiedByAnswer replays what real servers answered.
func TestServerIsIdentifiedByAnswer(t *testing.T) {
	t.Parallel()
	secure := quiet(httptest.NewUnstartedServer(http.NotFoundHandler()))
	secure.StartTLS()
	t.Cleanup(secure.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	for want, at := range map[string]string{
		"NATS":                      strings.TrimPrefix(natsdtest.Start(t, func(*server.Options) {}).ClientURL(), "nats://"),
		"HTTP":                      plain.Listener.Addr().String(),
		TLS:                         secure.Listener.Addr().String(),
		"TLS, no handshake in time": serve(t, answering("GET", "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")),
		"Redis":                     serve(t, answering("GET", "-ERR wrong number of arguments for 'get' command\r\n")),
		"beanstalkd":                serve(t, answering("GET", "UNKNOWN_COMMAND\r\n")),
		"memcache":                  serve(t, answering("GET", "ERROR\r\n")),
		"AMQP 0.9.1":                serve(t, answering("AMQP\x00\x00\x09\x01", "\x01\x00\x00\x00\x00\x02\x03\x00\x0a\x00\x0a\x00\x09")),
		"AMQP 1.0":                  serve(t, answering("AMQP\x00\x01", "AMQP\x00\x01\x00\x00")),
		"Kafka":                     serve(t, answering("\x00\x00\x00\x0e\x00\x12", "\x00\x00\x01\x9cweir\x00\x00")),
		"PostgreSQL":                serve(t, answering("\x00\x00\x00\x08\x04\xd2\x16\x2f", "N")),
		"MQTT":                      serve(t, answering("\x10\x0c\x00\x04MQTT", "\x20\x02\x00\x00")),
		"NSQ":                       serve(t, answering("  V2", "\x00\x00\x00\x20\x00\x00\x00\x01E_INVALID invalid command")),
		"Pulsar":                    serve(t, answering("\x00\x00\x00\x10\x00\x00\x00\x0c\x08\x02", "\x00\x00\x00\x18\x00\x00\x00\x14\x08\x03\x1a\x10")),
		"MongoDB":                   serve(t, answering("\x34\x00\x00\x00weir", "\x40\x01\x00\x00\x01\x00\x00\x00weir\xdd\x07\x00\x00")),
		"MongoDB, which also answers HTTP": serve(t, func(c net.Conn) {
			b := make([]byte, most)
			n, _ := c.Read(b)
			switch {
			case bytes.HasPrefix(b[:n], []byte("GET")):
				_, _ = io.WriteString(c, "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nIt looks like you are trying to access MongoDB over HTTP")
			case bytes.HasPrefix(b[:n], []byte("\x34\x00\x00\x00weir")):
				_, _ = io.WriteString(c, "\x40\x01\x00\x00\x01\x00\x00\x00weir\xdd\x07\x00\x00")
			}
		}),
		"ZeroMQ": serve(t, func(c net.Conn) { _, _ = io.WriteString(c, "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03") }),
		None:     serve(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }),
		"MySQL":  serve(t, func(c net.Conn) { _, _ = io.WriteString(c, "\x4a\x00\x00\x00\x0a8.0.36\x00") }),
		"the stream protocol of RabbitMQ": serve(t, answering("\x00\x00\x00\x0c\x00\x11\x00\x01",
			"\x00\x00\x00\x14\x80\x11\x00\x01\x00\x00\x00\x01\x00\x01")),
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			want, _, _ := strings.Cut(want, ", ")
			if got, err := At(t.Context(), at); got != want || err != nil {
				t.Errorf("At = %q, %v; want %q", got, err, want)
			}
		})
	}
}

// TestClientCertificateAlertMeansTLS: the alert is a TLS answer.
func TestClientCertificateAlertMeansTLS(t *testing.T) {
	t.Parallel()
	s := quiet(httptest.NewUnstartedServer(http.NotFoundHandler()))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	if got, err := At(t.Context(), s.Listener.Addr().String()); got != TLS || err != nil {
		t.Errorf("At = %q, %v; want %q", got, err, TLS)
	}
}

func TestClosedPortHasNoProtocol(t *testing.T) {
	t.Parallel()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	_ = l.Close()
	if got, err := At(t.Context(), l.Addr().String()); got != None || err == nil {
		t.Errorf("At = %q, %v; want the error of connecting", got, err)
	}
}
