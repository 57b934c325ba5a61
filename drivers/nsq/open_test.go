package nsq

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

const secret = "wr0ng" // trial.Refuses looks for it

// authority is an authentication server for nsqd, which admits clients with the secret.
func authority(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("secret") != secret {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, `{"ttl": 60, "identity": "ann", "authorizations": [{"permissions": ["subscribe", "publish"], "topic": ".*", "channels": [".*"]}]}`)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// passes publishes a message and receives it.
func passes(t *testing.T, options map[string][]string) {
	t.Helper()
	c := open(t, driver.Run{ID: "passes"}, options)
	l := trial.NewLog()
	p := producerOf(t, c, l)
	stop := l.Consume(t, c, driver.ConsumerSpec{})
	if err := publish(t, p, l, "hello"); err != nil {
		t.Error(err)
	}
	l.Until(t, "the message", func() bool { return len(l.Got) == 1 })
	stop()
	if len(l.Faults) > 0 {
		t.Errorf("faults: %v", l.Faults)
	}
}

func TestOpenErrorsAreExplained(t *testing.T) {
	cert, key := trial.Certificate(t)
	plain := startServer(t, "nsqd")
	other := startServer(t, "nsqd")
	encrypted := startServer(t, "nsqd", "-tls-cert="+cert, "-tls-key="+key, "-tls-required=tcp-https")
	guarded := startServer(t, "nsqd", "-auth-http-address="+authority(t))
	for _, tc := range []struct {
		name    string
		options map[string][]string
		is      error
		want    string
	}{
		{"the address of the HTTP interface", map[string][]string{"address": {plain.http}}, driver.ErrUnreachable, "what answers is not nsqd"},
		{"an HTTP interface where there is none", map[string][]string{"address": {plain.tcp}, "http": {"127.0.0.1:1"}}, driver.ErrUnreachable, "option http says where it is"},
		{"an HTTP interface that is the TCP one", map[string][]string{"address": {plain.tcp}, "http": {plain.tcp}}, driver.ErrUnreachable, "HTTP interface of " + plain.tcp},
		{"a lookupd where there is none", map[string][]string{"lookupd": {"127.0.0.1:1"}}, driver.ErrUnreachable, "lookupd: asking http://127.0.0.1:1"},
		{"a lookupd that is an nsqd", map[string][]string{"lookupd": {other.http}}, nil, "lookupd: asking http://" + other.http + ": NOT_FOUND"},
		{"TLS where there is none", map[string][]string{"address": {"tls://" + plain.tcp}}, driver.ErrUnsupported, "offers no TLS"},
		{"no TLS where it is wanted", map[string][]string{"address": {encrypted.tcp}}, driver.ErrUnsupported, "the server wants TLS (options tls.*)"},
		{"a certificate of nobody known", map[string][]string{"address": {"tls://" + encrypted.tcp}}, driver.ErrUnreachable, "certificate signed by unknown authority"},
		{"authorities in a file that is not there", map[string][]string{"address": {encrypted.tcp}, "tls.ca": {cert + ".nosuch"}}, nil, "option tls.ca"},
		{"no secret where one is wanted", map[string][]string{"address": {guarded.tcp}}, driver.ErrAuth, "option token"},
		{"a wrong secret", map[string][]string{"address": {guarded.tcp}, "token": {"wrong-" + secret}}, driver.ErrAuth, "E_AUTH_FAILED"},
		{"a time longer than the server takes", map[string][]string{"address": {plain.tcp}, "msg-timeout": {"1h"}}, nil, "option msg-timeout"},
	} {
		trial.Refuses(t, Definition(), tc.options, trial.Mistake{Name: tc.name, Is: tc.is, Says: tc.want})
	}
}

func TestMessagesPassEncrypted(t *testing.T) {
	cert, key := trial.Certificate(t)
	s := startServer(t, "nsqd", "-tls-cert="+cert, "-tls-key="+key, "-tls-required=tcp-https")
	passes(t, map[string][]string{"address": {s.tcp}, "tls.ca": {cert}})
	passes(t, map[string][]string{"address": {"tls://" + s.tcp}, "tls.insecure": {"true"}})
}

func TestMessagesPassWithASecret(t *testing.T) {
	s := startServer(t, "nsqd", "-auth-http-address="+authority(t))
	passes(t, map[string][]string{"address": {s.tcp}, "token": {secret}})
}

func TestMessagesPassPlainTCP(t *testing.T) {
	s := startServer(t, "nsqd")
	passes(t, map[string][]string{"address": {s.tcp}, "output-buffer": {"0"}})
	passes(t, map[string][]string{"address": {"tcp://" + s.tcp}, "topics": {ephemeral}, "channels": {ephemeral}})
	passes(t, map[string][]string{"address": {s.tcp}, "http": {s.http}, "output-buffer": {"64KiB"}})
}

// TestRequiredTLSNeverSendsPlaintextSecret uses a server without TLS that requests a secret, and
// records what it receives.
func TestRequiredTLSNeverSendsPlaintextSecret(t *testing.T) {
	said := make(chan string, 10)
	address := trial.Serve(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		b := make([]byte, 4096)
		n, _ := r.Read(b)
		answer := `{"version": "1.3.0", "tls_v1": false, "auth_required": true, "max_rdy_count": 1}`
		_, _ = c.Write(append([]byte{0, 0, 0, byte(len(answer) + 4), 0, 0, 0, 0}, answer...))
		more, _ := io.ReadAll(r)
		said <- string(b[:n]) + string(more)
	})
	_, err := trial.Open(t, Definition(), driver.Run{ID: "x"}, map[string][]string{"address": {"tls://" + address}, "token": {secret}})
	if !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("open: %v", err)
	}
	if text := <-said; !strings.Contains(text, "IDENTIFY") || strings.Contains(text, secret) {
		t.Errorf("the server was sent %q", text)
	}
}
