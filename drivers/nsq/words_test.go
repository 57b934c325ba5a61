package nsq

import (
	"errors"
	"strings"
	"testing"

	client "github.com/nsqio/go-nsq"

	"github.com/weirmq/weir/driver"
)

func TestFaultsInSettingsAreReportedTogether(t *testing.T) {
	for _, tc := range []struct {
		name    string
		options map[string][]string
		want    []string
	}{
		{"an address without a port", map[string][]string{"address": {"localhost"}}, []string{"option address: is not an address such as 127.0.0.1:4150"}},
		{"an address of another scheme", map[string][]string{"address": {"http://a:1"}}, []string{`option address: scheme "http" (tcp, tls)`}},
		{"an address with a password", map[string][]string{"address": {"tcp://ann:secret@a:1"}}, []string{"option address: holds a user or a password (they are options)"}},
		{"HTTP addresses for some servers only", map[string][]string{"address": {"a:1", "b:1"}, "http": {"a:2"}}, []string{"option http: has 1 addresses, and address has 2"}},
		{"a lookupd without a port", map[string][]string{"lookupd": {"a"}}, []string{"option lookupd: is not an address such as"}},
		{"half a certificate", map[string][]string{"tls.cert": {"f"}}, []string{"option tls.cert: tls.cert and tls.key go together"}},
		{"times that nobody takes", map[string][]string{"heartbeat": {"1ms"}, "write-timeout": {"1h"}, "msg-timeout": {"10ms"}}, []string{"option heartbeat: 1ms (1s to 1m)", "option write-timeout", "option msg-timeout: 10ms (0, or 1s or more)"}},
		{"a buffer that is too small", map[string][]string{"output-buffer": {"1B"}}, []string{"option output-buffer: 1B (0, or 64B or more)"}},
		{"a server that keeps less than nothing", map[string][]string{"server.mem-queue-size": {"-1"}, "server.sync-every": {"0"}}, []string{"option server.mem-queue-size: -1 (0 or more)", "option server.sync-every: 0 (1 or more)"}},
	} {
		cfg := newConfig()
		for k, v := range tc.options {
			if err := driver.SetOption(cfg, k, v...); err != nil {
				t.Fatal(err)
			}
		}
		err := driver.Check(cfg)
		if err == nil {
			t.Errorf("%s: is valid", tc.name)
			continue
		}
		var oe *driver.OptionError
		if !errors.As(err, &oe) {
			t.Errorf("%s: %v is no OptionError", tc.name, err)
		}
		for _, w := range tc.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q is not in: %v", tc.name, w, err)
			}
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: shows a password: %v", tc.name, err)
		}
	}
}

func TestWhatNSQRefusesIsInTheContractsWords(t *testing.T) {
	for _, tc := range []struct {
		text, want string
		is         error
	}{
		{"E_BAD_MESSAGE PUB message too big 1048577 > 1048576", "message too large: nsqd: E_BAD_MESSAGE PUB message too big 1048577 > 1048576", driver.ErrTooLarge},
		{"E_UNAUTHORIZED AUTH failed for PUB on \"t\" \"\"", "credentials refused: nsqd: E_UNAUTHORIZED AUTH failed for PUB on \"t\" \"\"", driver.ErrAuth},
		{"E_BAD_TOPIC PUB topic name \"ü\" is not valid", "not supported: nsqd: E_BAD_TOPIC PUB topic name \"ü\" is not valid", driver.ErrUnsupported},
		{"E_PUB_FAILED PUB failed exiting", "connection lost: nsqd: E_PUB_FAILED PUB failed exiting", driver.ErrDisconnected},
		{"E_FIN_FAILED FIN 0a1b2c3d4e5f6071 failed ID not in flight", "nsqd: E_FIN_FAILED FIN failed ID not in flight", nil},
	} {
		err := refusal(tc.text)
		if err.Error() != tc.want || tc.is != nil && !errors.Is(err, tc.is) {
			t.Errorf("refusal(%q) = %q; want %q, which is %v", tc.text, err, tc.want, tc.is)
		}
	}
}

func TestExistingTopicsAreNamedAsTheyAre(t *testing.T) {
	c := &conn{cfg: *newConfig(), run: driver.Run{ID: "r", Existing: true}}
	for in, ok := range map[string]bool{
		"orders": true, "orders.eu_1-x": true, "orders#ephemeral": true,
		"or ders": false, "orders#other": false, strings.Repeat("x", 65): false,
	} {
		got, err := c.topic(in)
		if ok && (err != nil || got != in) || !ok && !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("topic(%q) = %q, %v", in, got, err)
		}
	}
	if got := c.channel("r-s0"); got != "weir.r.s0" {
		t.Errorf("channel = %q", got)
	}
}

func FuzzNamesAreValidAndDiffer(f *testing.F) {
	f.Add("a.b", "a_2eb")
	f.Add("", " ")
	f.Add(strings.Repeat("long", 30), strings.Repeat("long", 31))
	f.Add("übung", "#ephemeral")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, kind := range []string{durable, ephemeral} {
			na, nb := name(kind, "weir", a), name(kind, "weir", b)
			if (a == b) != (na == nb) {
				t.Errorf("name of %q is %q, of %q is %q", a, na, b, nb)
			}
			if !client.IsValidTopicName(na) || isEphemeral(na) != (kind == ephemeral) {
				t.Errorf("name of %q is %q", a, na)
			}
		}
	})
}
