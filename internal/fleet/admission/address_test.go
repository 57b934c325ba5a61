package admission

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
)

const silent = "c4n4RyZq8wTkP5" // a secret that errors must not show

func TestJoinURLs(t *testing.T) {
	k := keep(t)
	x := token(t, k, time.Hour)
	pin, tok := "pin="+k.Pin().String(), "token="+x.Reveal()
	secret := func(s string) driver.Secret { return driver.NewSecret(s, "") }
	for _, tt := range []struct {
		url   string
		want  Address // compared by Reveal
		shown string
	}{
		{"weir://h:1?" + pin + "&" + tok, Address{Scheme: "weir", Host: "h:1", Pin: k.Pin(), Token: x}, "weir://h:1?" + pin},
		{"weir://h?" + tok + "&" + pin, Address{Scheme: "weir", Host: "h:7622", Pin: k.Pin(), Token: x}, "weir://h:7622?" + pin},
		{"weir://[::1]:5/?" + tok + "&" + pin, Address{Scheme: "weir", Host: "[::1]:5", Pin: k.Pin(), Token: x}, "weir://[::1]:5?" + pin},
		{"weir://127.0.0.1:5", Address{Scheme: "weir", Host: "127.0.0.1:5"}, "weir://127.0.0.1:5"},
		{"weir://localhost", Address{Scheme: "weir", Host: "localhost:7622"}, "weir://localhost:7622"},
		{"weir://[::1]", Address{Scheme: "weir", Host: "[::1]:7622"}, "weir://[::1]:7622"},
		{"nats://127.0.0.1:4222", Address{Scheme: "nats", Host: "127.0.0.1:4222"}, "nats://127.0.0.1:4222"},
		{"nats://alice:" + silent + "@h", Address{Scheme: "nats", Host: "h:4222", User: secret("alice"), Password: secret(silent)}, "nats://h:4222"},
		{"tls://" + silent + "@h?" + tok, Address{Scheme: "tls", Host: "h:4222", User: secret(silent), Token: x}, "tls://h:4222"},
		{"tls://a%40b:%2F%3A@h?" + pin, Address{Scheme: "tls", Host: "h:4222", User: secret("a@b"), Password: secret("/:"), Pin: k.Pin()}, "tls://h:4222?" + pin},
	} {
		a, err := Parse(tt.url)
		if err != nil {
			t.Errorf("%s: %v", tt.url, err)
			continue
		}
		if a.Reveal() != tt.want.Reveal() || a.Token.ID() != tt.want.Token.ID() || a.User.Reveal() != tt.want.User.Reveal() || a.Password.Reveal() != tt.want.Password.Reveal() {
			t.Errorf("%s: %s; want %s", tt.url, a.Reveal(), tt.want.Reveal())
		}
		if a.String() != tt.shown {
			t.Errorf("%s: shown as %s; want %s", tt.url, a, tt.shown)
		}
		if (a.TLS() == nil) != (a.Scheme == SchemeNATS) {
			t.Errorf("%s: TLS %v", tt.url, a.TLS())
		}
	}
}

func TestInvalidJoinURLsAreRejected(t *testing.T) {
	k := keep(t)
	pin, tok := "pin="+k.Pin().String(), "token="+token(t, k, time.Hour).Reveal()
	good := pin + "&" + tok
	for _, tt := range []struct {
		url  string
		want []string
	}{
		{"", []string{"is not a URL"}},
		{silent, []string{"is not a URL"}},
		{"weir:h", []string{"is not a URL"}},
		{"weir://h:x" + silent + "?" + good, []string{"is not a URL"}},
		{"weir://h%zz" + silent, []string{"is not a URL"}},
		{"http://h?token=" + silent, []string{"a scheme other", "an invalid token"}},
		{"weir://h:1", []string{"lacks its pin", "lacks its token"}},
		{"weir://127.0.0.1:1?" + pin, []string{"lacks its token"}},
		{"weir://127.0.0.1:1?" + tok, []string{"lacks its pin"}},
		{"weir://0.0.0.0:1", []string{"lacks its pin", "lacks its token"}},
		{"weir://:1?pin=" + silent, []string{"has no host", "a pin that is not sha256:", "lacks its token"}},
		{"weir://u:" + silent + "@h:0?" + good, []string{"before an @", "an invalid port"}},
		{"weir://h:70000?" + good, []string{"1 to 65535"}},
		{"weir://h/" + silent + "?" + good, []string{"between its port"}},
		{"weir://h?" + good + "#" + silent, []string{"after them"}},
		{"weir://h?" + good + "&" + silent, []string{"a parameter other"}},
		{"weir://h?" + good + "&" + tok, []string{"has its token twice"}},
		{"weir://h?%zz=" + silent + "&" + good, []string{"cannot be read"}},
		{"nats://h?" + pin, []string{"has a pin, but nats:// has no TLS"}},
		{"nats://@h", []string{"has an @"}},
		{"nats://" + silent + ":@h", []string{"has an @"}},
		{"nats://h h", []string{"is not a URL"}},
		{"nats://0::", []string{"an invalid host"}},
		{"nats://h,i", []string{"an invalid host"}},
		{"nats://" + strings.Repeat("h", urlSize), []string{"at most 2048"}},
	} {
		_, err := Parse(tt.url)
		if err == nil {
			t.Errorf("%s is taken", tt.url)
			continue
		}
		for _, w := range append(tt.want, "weir://HOST:PORT?pin=") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v; want %q", tt.url, err, w)
			}
		}
		if strings.Contains(err.Error(), silent) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", tt.url, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	pin := "pin=sha256:" + strings.Repeat("1a", 32)
	tok := "token=0123456789abcdef.1767355200." + strings.Repeat("A", 43)
	for _, s := range []string{
		"weir://h:1?" + pin + "&" + tok, "weir://[::1]?" + tok + "&" + pin, "nats://a:b@h", "tls://a@h:5?" + pin, "nats://h?" + tok, "nats://%41:%00@h/", "weir://h", "://", "tls://[fe80::1%25eth0]:1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := Parse(s)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 1500 {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		b, err := Parse(a.Reveal())
		if err != nil || b.Reveal() != a.Reveal() || b.String() != a.String() || b.Host != a.Host || b.Pin != a.Pin || b.Token.Reveal() != a.Token.Reveal() ||
			b.User.Reveal() != a.User.Reveal() || b.Password.Reveal() != a.Password.Reveal() {
			t.Errorf("%q is %q, which is %q, %v", s, a.Reveal(), b.Reveal(), err)
		}
		host, _, _ := net.SplitHostPort(a.Host)
		ours := a.IsOwn() && IsLoopback(host)
		if a.Scheme == SchemeWeir && (a.Pin.IsZero() || a.Token.IsZero()) && !ours {
			t.Errorf("%q is taken without a pin or a token", s)
		}
		if strings.ContainsAny(a.String(), "@") || strings.Contains(a.String(), "token") {
			// A host may hold the word.
			if !strings.Contains(a.Host, "token") {
				t.Errorf("%q is shown as %q", s, a)
			}
		}
	})
}

func TestWhereAgentsReachThisHost(t *testing.T) {
	for _, tt := range []struct{ listen, host string }{
		{"h.example:5", "h.example"}, {"[::1]:5", "::1"}, {"127.0.0.1:5", "127.0.0.1"}, {":5", ""}, {"0.0.0.0:5", ""}, {"[::]:5", ""}, {"h.example:+5", "h.example"},
	} {
		shown, reach, err := Reachable(tt.listen)
		if tt.host == "" {
			// What this host is to others is not known here; it is not all addresses.
			if own, none := outward(); none == nil {
				tt.host = own
			} else if err != nil && err.Error() == none.Error() {
				continue
			}
		}
		if err != nil || reach != net.JoinHostPort(tt.host, "5") || shown != tt.listen {
			t.Errorf("%s: %s, %s, %v; want host %s", tt.listen, shown, reach, err, tt.host)
		}
	}
}
