package redisconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/redistest"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func TestMain(m *testing.M) {
	served.Main(redistest.Definition())
	goleak.VerifyTestMain(m)
}

const canary = "swordfish-9"

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestAddressesAreReadAsWritten(t *testing.T) {
	for in, want := range map[string]endpoint.Endpoint{
		"127.0.0.1:7000":             {Scheme: "redis", Host: "127.0.0.1", Port: "7000"},
		"redis.example":              {Scheme: "redis", Host: "redis.example", Port: "6379"},
		"redis://h:1":                {Scheme: "redis", Host: "h", Port: "1"},
		"rediss://h":                 {Scheme: "rediss", Host: "h", Port: "6379", Secure: true},
		"redis://u:" + canary + "@h": {Scheme: "redis", Host: "h", Port: "6379", User: "u", Password: canary},
		"redis://:" + canary + "@h/": {Scheme: "redis", Host: "h", Port: "6379", Password: canary},
		"[::1]:7000":                 {Scheme: "redis", Host: "::1", Port: "7000"},
	} {
		o := Defaults()
		o.Address = []string{in}
		got, err := o.servers()
		if err != nil || got[0].Endpoint != want {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
	for in, want := range map[string]string{
		"http://h":                        "scheme",
		"redis://u:" + canary + "@h:port": "is not an address",
		"redis://":                        "is not an address",
		"redis://" + canary + "@h/3":      "database",
	} {
		o := Defaults()
		o.Address = []string{in}
		err := o.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// A config is that of a driver with only these options.
type config struct{ Options }

func (*config) Open(context.Context, driver.Run) (driver.Conn, error) { return nil, nil }

func TestInvalidOptionsAreRejected(t *testing.T) {
	for name, spoil := range map[string]func(o *config){
		"address": func(o *config) { o.Address = nil },
		"user":    func(o *config) { o.User = "u" },
	} {
		o := &config{Defaults()}
		spoil(o)
		var oe *driver.OptionError
		if err := driver.Check(o); !errors.As(err, &oe) || oe.Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// said is a server error.
type said string

func (s said) Error() string { return string(s) }
func (said) RedisError()     {}

var _ redis.Error = said("")

func TestErrorsMapToContractErrors(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: &os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}}
	late := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	for _, x := range []struct{ err, want error }{
		{io.EOF, driver.ErrDisconnected},
		{fmt.Errorf("reading: %w", syscall.ECONNRESET), driver.ErrDisconnected},
		{dial, driver.ErrDisconnected},
		{late, driver.ErrTimeout},
		{context.DeadlineExceeded, driver.ErrTimeout},
		{redis.ErrClosed, driver.ErrDisconnected},
		{said("OOM command not allowed when used memory > 'maxmemory'."), driver.ErrBlocked},
		{said("LOADING Redis is loading the dataset in memory"), driver.ErrBlocked},
		{said("NOREPLICAS Not enough good replicas to write."), driver.ErrBlocked},
		{said("WRONGTYPE Operation against a key holding the wrong kind of value"), driver.ErrUnsupported},
		{said("READONLY You can't write against a read only replica."), driver.ErrUnsupported},
		{said("NOAUTH Authentication required."), driver.ErrAuth},
		{said("WRONGPASS invalid username-password pair or user is disabled."), driver.ErrAuth},
		{said("ERR Protocol error: invalid bulk length"), driver.ErrTooLarge},
		{driver.ErrClosed, driver.ErrClosed},
	} {
		if got := Cause(x.err); !errors.Is(got, x.want) || !errors.Is(got, x.err) {
			t.Errorf("%v became %v", x.err, got)
		}
	}
	if Cause(nil) != nil {
		t.Error("no error became one")
	}
	if other := said("ERR something else"); !errors.Is(Cause(other), other) {
		t.Errorf("%v became %v", other, Cause(other))
	}
	one := &net.OpError{
		Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50312}, Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6379},
		Err: syscall.ECONNRESET,
	}
	if got := Cause(one); strings.Contains(got.Error(), "50312") {
		t.Errorf("the text is of one connection only: %v", got)
	}
}

func TestVersionsAreCompared(t *testing.T) {
	for v, want := range map[string]bool{"7.0.15": true, "6.2.14": false, "10.1": true, "7": true, unknown: true} {
		if got := AtLeast(v, 7, 0); got != want {
			t.Errorf("%s: %v", v, got)
		}
	}
	if AtLeast("7.0.15", 7, 2) {
		t.Error("7.0.15 is not 7.2")
	}
}

func TestCredentials(t *testing.T) {
	s := redistest.Start(t, "--requirepass", canary, "--user", "u", "on", ">"+canary+"2", "~*", "&*", "+@all")
	for _, x := range []struct {
		name, user, password, address string
		want                          error
	}{
		{name: "the server's password", password: canary},
		{name: "a user's", user: "u", password: canary + "2"},
		{name: "in the address", address: "redis://u:" + canary + "2@" + s.Address},
		{name: "none", want: driver.ErrAuth},
		{name: "a wrong password", password: canary + "3", want: driver.ErrAuth},
		{name: "of nobody", user: "v", password: canary, want: driver.ErrAuth},
	} {
		t.Run(x.name, func(t *testing.T) {
			o := Defaults()
			o.Address = []string{s.Address}
			if x.address != "" {
				o.Address = []string{x.address}
			}
			if o.User = x.user; x.password != "" {
				o.Password = driver.NewSecret(x.password, "")
			}
			l, err := Open(within(t), &o, driver.Run{ID: "r"})
			if err == nil {
				_ = l.Close(within(t))
			}
			if !errors.Is(err, x.want) {
				t.Fatalf("Open: %v", err)
			}
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("the password is in the error: %v", err)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	cert, key := trial.Certificate(t)
	port := redistest.FreePort(t)
	s := redistest.Start(t, "--tls-port", strconv.Itoa(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	secure := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	other, _ := trial.Certificate(t)
	for _, x := range []struct {
		name, address string
		tls           driver.TLSOptions
		want          error
	}{
		{name: "with a certificate", address: secure, tls: driver.TLSOptions{CA: cert, Cert: cert, Key: key}},
		{name: "by the scheme", address: "rediss://" + secure, tls: driver.TLSOptions{CA: cert, Cert: cert, Key: key}},
		{name: "not verified", address: secure, tls: driver.TLSOptions{Insecure: true, Cert: cert, Key: key}},
		{name: "without a certificate", address: secure, tls: driver.TLSOptions{CA: cert}, want: driver.ErrUnreachable},
		{name: "of another authority", address: secure, tls: driver.TLSOptions{CA: other, Cert: cert, Key: key}, want: driver.ErrUnreachable},
		{name: "none at all", address: secure, want: driver.ErrUnreachable},
		{name: "at a port without", address: "rediss://" + s.Address, tls: driver.TLSOptions{CA: cert, Cert: cert, Key: key}, want: driver.ErrUnreachable},
	} {
		t.Run(x.name, func(t *testing.T) {
			o := Defaults()
			o.Address, o.TLS = []string{x.address}, x.tls
			l, err := Open(within(t), &o, driver.Run{ID: "r"})
			if err == nil {
				p := must.Get(NewPipe(l, 10, func(_ int, err error) {
					if err != nil {
						t.Error(err)
					}
				}))(t)
				p.Submit(redis.NewStatusCmd(context.Background(), "ping"), 0)
				if err := p.Wait(within(t)); err != nil {
					t.Error(err)
				}
				p.Close(within(t))
				_ = l.Close(within(t))
			}
			if !errors.Is(err, x.want) {
				t.Fatalf("Open: %v", err)
			}
		})
	}
	o := Defaults()
	o.TLS.CA = filepath.Join(t.TempDir(), "missing.pem")
	var oe *driver.OptionError
	if _, err := Open(within(t), &o, driver.Run{ID: "r"}); !errors.As(err, &oe) || oe.Name != "tls.ca" {
		t.Errorf("a missing file: %v", err)
	}
}

func TestMasterChosenAmongServers(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.Start(t, "--replicaof", "127.0.0.1", strconv.Itoa(master.Port))
	o := Defaults()
	o.Address = []string{"127.0.0.1:1", replica.Address, master.Address}
	l := must.Get(Open(within(t), &o, driver.Run{ID: "r"}))(t)
	if l.at.Load().HostPort() != master.Address {
		t.Errorf("connected to %s, the master is %s", l.at.Load().HostPort(), master.Address)
	}
	_ = l.Close(within(t))
	o.Address = []string{replica.Address}
	if l, err := Open(within(t), &o, driver.Run{ID: "r"}); !errors.Is(err, driver.ErrUnsupported) {
		_ = l.Close(within(t))
		t.Errorf("a replica alone: %v", err)
	}
}

func TestPipeAbandonsSilentServer(t *testing.T) {
	s := redistest.Start(t)
	o := Defaults()
	o.Address, o.AckTimeout = []string{s.Address}, 200*time.Millisecond
	l := must.Get(Open(within(t), &o, driver.Run{ID: "r"}))(t)
	answers := make(chan error, 100)
	p := must.Get(NewPipe(l, 100, func(_ int, err error) { answers <- err }))(t)
	resume := must.Get(s.Stall())(t)
	defer resume()
	for i := range 10 {
		p.Submit(redis.NewStatusCmd(context.Background(), "ping"), i)
	}
	must.Do(t, p.Wait(within(t)))
	for range 10 {
		if err := <-answers; !errors.Is(err, driver.ErrTimeout) && !errors.Is(err, driver.ErrDisconnected) {
			t.Errorf("an answer that did not come is: %v", err)
		}
	}
	resume()
	p.Close(within(t))
	_ = l.Close(within(t))
}
