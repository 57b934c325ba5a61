package nsq

import (
	"errors"
	"strings"
	"testing"

	client "github.com/nsqio/go-nsq"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

func TestFaultsInSettings(t *testing.T) {
	trial.Refuses(t, Definition(), nil,
		trial.Mistake{Name: "an address without a port", Set: []string{"address", "localhost"}, Option: "address", Says: "is not an address such as 127.0.0.1:4150"},
		trial.Mistake{Name: "an address with a password", Set: []string{"address", "tcp://ann:wr0ng@a:1"}, Option: "address", Says: "holds a user or a password (they are options)"},
		trial.Mistake{Name: "a lookupd without a port", Set: []string{"lookupd", "a"}, Option: "lookupd", Says: "is not an address such as"},
		trial.Mistake{Name: "no duration that nobody takes, and off", Set: []string{"msg-timeout", "10ms"}, Option: "msg-timeout", Says: "10ms (0, or 1s or more)"},
	)
	cfg := newConfig()
	cfg.Address, cfg.HTTP = []string{"a:1", "b:1"}, []string{"a:2"}
	if err := driver.Check(cfg); err == nil || !strings.Contains(err.Error(), "option http: has 1 addresses, and address has 2") {
		t.Errorf("HTTP addresses for some servers only: %v", err)
	}
}

func TestNSQErrorsMapToContractErrors(t *testing.T) {
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

func TestExistingTopicNamesAreKept(t *testing.T) {
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
