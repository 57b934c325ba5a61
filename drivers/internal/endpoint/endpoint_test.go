package endpoint_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
)

var (
	strict = endpoint.Kind{Schemes: []string{"tcp"}, Secure: []string{"tls"}, Like: "127.0.0.1:4150"}
	free   = endpoint.Kind{Schemes: []string{"redis"}, Secure: []string{"rediss"}, Port: "6379", Like: "127.0.0.1:6379", User: true}
	plain  = endpoint.Kind{Schemes: []string{"nats", "ws"}, Port: "4222", Ports: map[string]string{"ws": "80"}, Like: "nats://127.0.0.1:4222"}
	bare   = endpoint.Kind{Port: "4730", Like: "127.0.0.1:4730"}
	web    = endpoint.Kind{Schemes: []string{"http"}, Secure: []string{"https"}, Like: "http://127.0.0.1:15672", Path: true}
)

func TestParseAddress(t *testing.T) {
	for _, tc := range []struct {
		kind     endpoint.Kind
		in, want string
		secure   bool
	}{
		{strict, "a:1", "tcp://a:1", false},
		{strict, "tls://a:1/", "tls://a:1", true},
		{strict, "[::1]:7", "tcp://[::1]:7", false},
		{free, "a", "redis://a:6379", false},
		{free, "rediss://ann:hunter2@a", "rediss://a:6379", true},
		{plain, "a", "nats://a:4222", false},
		{plain, "ws://a", "ws://a:80", false},
		{bare, "a", "tcp://a:4730", false},
		{web, "https://a:1/base/", "https://a:1/base", true},
	} {
		e, err := tc.kind.Parse(tc.in)
		if err != nil || e.String() != tc.want || e.Secure != tc.secure {
			t.Errorf("%s: %v, secure %v, %v; want %s", tc.in, e, e.Secure, err, tc.want)
		}
	}
	if e, _ := free.Parse("rediss://ann:hunter2@a"); e.User != "ann" || e.Password != "hunter2" {
		t.Errorf("user %q, password %q", e.User, e.Password)
	}
}

// TestInvalidAddressIsRejected checks that each fault is reported, without any password.
func TestInvalidAddressIsRejected(t *testing.T) {
	for _, tc := range []struct {
		kind     endpoint.Kind
		in, want string
	}{
		{strict, "localhost", "is not an address such as 127.0.0.1:4150"},
		{strict, ":1", "is not an address"},
		{strict, "tcp://a b:1", "is not an address"},
		{strict, "http://a:1", `scheme "http" (tcp, tls)`},
		{strict, "ann:hunter2@a:1", "holds a user or a password"},
		{strict, "tcp://a:1/path", "holds more than a host and a port"},
		{web, "http://a:1/?x=hunter2", "holds more than a host and a port"},
		{free, "redis://ann:hunter2@a/7", "holds more than a host and a port"},
		{free, "redis://ann:hunter2@", "is not an address"},
	} {
		_, err := tc.kind.All("address", []string{"a:1", tc.in})
		var oe *driver.OptionError
		if !errors.As(err, &oe) || !strings.HasPrefix(err.Error(), "option address: "+tc.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v; want %s", tc.in, err, tc.want)
		}
	}
}

func TestAnyTLSAddressSecuresList(t *testing.T) {
	l, err := strict.All("address", []string{"a:1", "tls://b:2"})
	if err != nil || !l.Secure() || l.String() != "a:1, b:2" {
		t.Errorf("%v, secure %v, %v", l, l.Secure(), err)
	}
	if c, err := l[0].TLS(driver.TLSOptions{}); c != nil || err != nil {
		t.Errorf("TLS that nobody asked for: %v, %v", c, err)
	}
	for what, e := range map[string]struct {
		endpoint.Endpoint
		driver.TLSOptions
	}{"an address": {Endpoint: l[1]}, "an option": {l[0], driver.TLSOptions{Insecure: true}}} {
		if c, err := e.TLS(e.TLSOptions); err != nil || c == nil || c.ServerName != e.Host {
			t.Errorf("TLS that %s asks for: %v, %v", what, c, err)
		}
	}
}
