package natsconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run starts a server that requires credentials, in the test process.
func run(t *testing.T) string {
	t.Helper()
	return natsdtest.Start(t, func(o *server.Options) { o.Username, o.Password = "ann", "right" }).Addr().String()
}

func TestConnect(t *testing.T) {
	address := run(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close() // accepts connections, but sends nothing
	nobody := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	_ = nobody.Close()
	for _, c := range []struct {
		name, address  string
		user, password string
		token          string
		want           error
	}{
		{"right credentials", address, "ann", "right", "", nil},
		{"right credentials in the address", "nats://ann:right@" + address, "", "", "", nil},
		{"a wrong password", address, "ann", "wrong", "", driver.ErrAuth},
		{"a wrong password in the address", "nats://ann:wrong@" + address, "", "", "", driver.ErrAuth},
		{"no credentials", address, "", "", "", driver.ErrAuth},
		{"a token where there is none", address, "", "", "wrong", driver.ErrAuth},
		{"nobody there", "nats://ann:wrong@" + nobody.Addr().String(), "", "", "", driver.ErrUnreachable},
		{"a server that is silent", l.Addr().String(), "", "", "", driver.ErrUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Defaults()
			o.Address, o.User = []string{c.address}, c.user
			o.Password, o.Token = driver.NewSecret(c.password, ""), driver.NewSecret(c.token, "")
			must.Do(t, o.Validate())
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			link, err := Connect(ctx, &o, driver.Run{ID: "t"}, "test", Events{})
			if err == nil {
				defer func() { _ = link.Close(ctx) }()
			}
			if c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
				t.Fatalf("Connect: %v; want %v", err, c.want)
			}
			if err == nil {
				return
			}
			if at := strings.TrimPrefix(c.address[strings.LastIndex(c.address, "@")+1:], "nats://"); !strings.Contains(err.Error(), at) {
				t.Errorf("%v does not name %s", err, at)
			}
			if strings.Count(err.Error(), "connecting to") != 1 {
				t.Errorf("%v repeats itself", err)
			}
			if c.name == "nobody there" && !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%v; want what the host said", err)
			}
			if strings.Contains(err.Error(), "wrong") {
				t.Errorf("%v shows the secret", err)
			}
			if ctx.Err() != nil {
				t.Error("Connect took longer than its own limit")
			}
		})
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close() // accepts connections, but sends nothing
	o := Defaults()
	o.Address = []string{l.Addr().String()}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Connect(ctx, &o, driver.Run{ID: "t"}, "test", Events{}); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("Connect: %v; want the context's error", err)
	}
}

func TestEpochTellsConnectionsApart(t *testing.T) {
	o := Defaults()
	o.Address, o.User, o.Password = []string{run(t)}, "ann", driver.NewSecret("right", "")
	o.ReconnectWait = time.Millisecond
	lost, back := make(chan error, 1), make(chan string, 1)
	run := driver.Run{ID: "t", Event: func(kind, text string) { back <- kind + ": " + text }}
	link := must.Get(Connect(t.Context(), &o, run, "producer 0", Events{Lost: func(err error) { lost <- err }}))(t)
	defer func() { _ = link.Close(context.Background()) }()
	first := link.Epoch()
	if !link.Up() {
		t.Errorf("epoch %d of a connection; want an odd one", first)
	}
	link.Kill()
	if link.Up() && link.Epoch() == first {
		t.Errorf("epoch %d after the connection was killed; want another", first)
	}
	if err := <-lost; !errors.Is(err, driver.ErrDisconnected) {
		t.Errorf("Lost(%v); want ErrDisconnected", err)
	}
	if got := <-back; got != "reconnect: producer 0" {
		t.Errorf("event %q; want reconnect: producer 0", got)
	}
	if e := link.Epoch(); !link.Up() || e == first {
		t.Errorf("epoch %d of the second connection, %d of the first", e, first)
	}
}

// A config is that of a driver without other settings.
type config struct{ Options }

func (*config) Open(context.Context, driver.Run) (driver.Conn, error) { return nil, nil }

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(*Options)
	}{
		{"defaults", "", func(*Options) {}},
		{"host and port", "", func(o *Options) { o.Address = []string{"h:1", "[::1]:2"} }},
		{"a scheme of another system", "scheme", func(o *Options) { o.Address = []string{"http://h"} }},
		{"no host", "is not an address such as nats://127.0.0.1:4222", func(o *Options) { o.Address = []string{"nats://:1"} }},
		{"no URL", "is not an address", func(o *Options) { o.Address = []string{"nats://u:secret@h:x"} }},
		{"a password without a user", "without user", func(o *Options) { o.Password = driver.NewSecret("secret", "") }},
		{"user and token", "only one", func(o *Options) { o.User, o.Token = "u", driver.NewSecret("secret", "") }},
		{"a certificate without its key", "go together", func(o *Options) { o.TLS.Cert = "f" }},
		{"no ping", "ping-interval: 0s (1ms or more)", func(o *Options) { o.PingInterval = 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &config{Defaults()}
			c.change(&o.Options)
			err := driver.Check(o)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Validate: %v; want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%v shows the secret", err)
			}
		})
	}
}

func TestShowHidesUserinfo(t *testing.T) {
	o := Options{Address: []string{"nats://u:secret@a:1", "token@b:2", "c:3", "d", "wss://e/x"}}
	if got, want := o.Show(), "nats://a:1, nats://b:2, nats://c:3, nats://d:4222, wss://e:443/x"; got != want {
		t.Errorf("Show() = %q; want %q", got, want)
	}
}

func TestMissingFilesAreNamed(t *testing.T) {
	for name, tls := range map[string]driver.TLSOptions{"tls.ca": {CA: "/nowhere/ca.pem"}, "tls.cert": {Cert: "/nowhere/c.pem", Key: "/nowhere/k.pem"}} {
		o := Defaults()
		o.TLS = tls
		_, err := Connect(t.Context(), &o, driver.Run{ID: "t"}, "test", Events{})
		var oe *driver.OptionError
		if !errors.As(err, &oe) || oe.Name != name {
			t.Errorf("Connect: %v; want a fault in %s", err, name)
		}
	}
}

func TestCause(t *testing.T) {
	for _, c := range []struct{ err, want error }{
		{nats.ErrMaxPayload, driver.ErrTooLarge},
		{nats.ErrReconnectBufExceeded, driver.ErrDisconnected},
		{nats.ErrConnectionClosed, driver.ErrDisconnected},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, driver.ErrDisconnected},
		{context.DeadlineExceeded, driver.ErrTimeout},
		{nats.ErrAuthorization, driver.ErrAuth},
		{errors.New("nats: 'Authorization Violation'"), driver.ErrAuth},
		{fmt.Errorf("x: %w", driver.ErrClosed), driver.ErrClosed},
		{nats.ErrBadSubject, nats.ErrBadSubject},
	} {
		if got := Cause(c.err); !errors.Is(got, c.want) || !errors.Is(got, c.err) {
			t.Errorf("Cause(%v) = %v; want it to be %v too", c.err, got, c.want)
		}
	}
	if got := Cause(nats.ErrReconnectBufExceeded).Error(); strings.Contains(got, "buffer") {
		t.Errorf("between two connections: %q; there is no buffer", got)
	}
	if Cause(nil) != nil {
		t.Error("Cause(nil) is an error")
	}
}

func FuzzTokenIsOneTokenAndNeverShared(f *testing.F) {
	f.Add("a.b", "a_2eb")
	f.Add("", " ")
	f.Add("übung", "*")
	f.Fuzz(func(t *testing.T, a, b string) {
		ta, tb := Token(a), Token(b)
		if (a == b) != (ta == tb) {
			t.Errorf("Token(%q) = %q, Token(%q) = %q", a, ta, b, tb)
		}
		if strings.ContainsAny(ta, ". *>/\\\t\r\n") {
			t.Errorf("Token(%q) = %q is not a single token", a, ta)
		}
	})
}

func TestErrorTextOmitsClientPort(t *testing.T) {
	addr := func(port int) *net.TCPAddr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port} }
	for _, c := range []struct {
		name, want string
		a, b       error
	}{
		{
			"a socket's", "connection lost: read tcp 127.0.0.1:4222: connection reset by peer",
			&net.OpError{Op: "read", Net: "tcp", Source: addr(50001), Addr: addr(4222), Err: syscall.ECONNRESET},
			&net.OpError{Op: "read", Net: "tcp", Source: addr(50002), Addr: addr(4222), Err: syscall.ECONNRESET},
		},
		{
			"one of an inbox", `permissions violation for subscription to "_INBOX.*"`,
			errors.New(`permissions violation for subscription to "_INBOX.XyZ12.*"`),
			errors.New(`permissions violation for subscription to "_INBOX.AbC34.7-0"`),
		},
	} {
		a, b := Cause(c.a), Cause(c.b)
		if a.Error() != c.want || b.Error() != c.want || !errors.Is(a, c.a) {
			t.Errorf("%s: %v and %v; want %s", c.name, a, b, c.want)
		}
	}
}

func TestUserSubjects(t *testing.T) {
	mine, theirs := driver.Run{ID: "r"}, driver.Run{ID: "r", Existing: true}
	for _, c := range []struct {
		name           string
		run            driver.Run
		destination    string
		target, source string // "": refused
	}{
		{"the run's own", mine, "a.b", "weir.r.a_2eb", "weir.r.a_2eb"},
		{"a subject", theirs, "orders.eu", "orders.eu", "orders.eu"},
		{"a wildcard", theirs, "orders.*", "", "orders.*"},
		{"all below", theirs, "orders.>", "", "orders.>"},
		{"an asterisk within a token", theirs, "a*", "a*", "a*"},
		{"a blank", theirs, "a b", "", ""},
		{"a line break", theirs, "a\r\nPUB b 0", "", ""},
		{"an empty token", theirs, "a..b", "", ""},
		{"nothing", theirs, "", "", ""},
		{"all below in the middle", theirs, "a.>.b", "", ""},
	} {
		target, err := Target(c.run, c.destination)
		if target != c.target || (err != nil) != (c.target == "") || err != nil && !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: target %q, %v; want %q", c.name, target, err, c.target)
		}
		source, err := Source(c.run, c.destination)
		if (err != nil) != (c.source == "") || err == nil && source != c.source {
			t.Errorf("%s: source %q, %v; want %q", c.name, source, err, c.source)
		}
	}
}

func TestSizeIsCheckedAgainstTheServer(t *testing.T) {
	o := Defaults()
	o.Address, o.User, o.Password = []string{run(t)}, "ann", driver.NewSecret("right", "")
	link := must.Get(Connect(t.Context(), &o, driver.Run{ID: "t"}, "test", Events{}))(t)
	defer func() { _ = link.Close(context.Background()) }()
	most := int(link.MaxPayload())
	for largest, fits := range map[int]bool{0: true, 1: true, most: true, most + 1: false, 2 * most: false} {
		err := link.CheckSize(largest)
		if fits != (err == nil) || err != nil && !errors.Is(err, driver.ErrTooLarge) {
			t.Errorf("CheckSize(%d): %v; the server takes %d", largest, err, most)
		}
		if err != nil && (!strings.Contains(err.Error(), driver.FormatSize(int64(largest))) || !strings.Contains(err.Error(), driver.FormatSize(int64(most)))) {
			t.Errorf("CheckSize(%d): %v does not name both sizes", largest, err)
		}
	}
}
