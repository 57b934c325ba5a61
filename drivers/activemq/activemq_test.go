package activemq

import (
	"errors"
	"strings"
	"testing"
	"time"

	client "github.com/Azure/go-amqp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func TestGuaranteeFollowsServerSettings(t *testing.T) {
	files, memory := shared.Up(t, 1), served.Up(t, Definition(), 1, served.With{Settings: map[string]string{"persistence": "no"}})
	for _, tc := range []struct {
		on   *served.System
		set  []string
		want driver.Confirms
	}{
		{files, nil, driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync}},
		{files, []string{"store", "written"}, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
		{files, []string{"store", "unknown"}, driver.Confirms{Guarantee: driver.Received}},
		{files, []string{"durable", "no"}, driver.Confirms{Guarantee: driver.Received}},
		{files, []string{"confirm", "no"}, driver.Confirms{Guarantee: driver.Written}},
		{memory, nil, driver.Confirms{Guarantee: driver.Received}},
	} {
		f, err := trial.Declared(t, Definition(), tc.on.Options, tc.set...).Facts(t.Context())
		if err != nil || f.Confirms != tc.want || f.Version != "6.3.1" {
			t.Errorf("%v: %+v, %v; want %+v", tc.set, f, err, tc.want)
		}
	}
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	s := shared.Up(t, 1)
	trial.Refuses(t, Definition(), s.Options,
		trial.Mistake{Name: "a password without a user", Set: []string{"user", "", "password", "wr0ng"}, Option: "password"},
		trial.Mistake{Name: "no user", Set: []string{"user", "", "password", ""}, Is: driver.ErrAuth},
	)
	c := trial.Opened(t, Definition(), driver.Run{Existing: true}, s.Options)
	trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{"weir.*"}}, "a name of several queues", driver.ErrUnsupported, "")
}

func TestPageGuaranteesMatchServers(t *testing.T) { served.Guarantees(t, Definition(), shared, "") }

// TestAFullServerSaysSo fills a server up to each of its limits, while a producer is open and before
// another is.
func TestAFullServerSaysSo(t *testing.T) {
	for limit, settings := range map[string]map[string]string{
		"memoryUsage": {"memory-usage": "1 mb", "persistence": "no"}, // with files, messages move there
		"storeUsage":  {"store-usage": "1 mb"},
	} {
		t.Run(limit, func(t *testing.T) {
			s := served.Up(t, Definition(), 1, served.With{Settings: settings})
			c, blocked := trial.Blocking(t, Definition(), s.Options)
			p, _ := trial.Producer(t, c, "d")
			go trial.Publish(t, p, 900, 4<<10) // less than the credit of a link
			says := func(text string) bool { return strings.Contains(text, "the limit of "+limit+" is reached") }
			if !trial.Eventually(func() bool { return says(blocked()) }) {
				t.Errorf("a producer that is open: %q", blocked())
			}
			_, err := c.Producer(t.Context(), driver.ProducerSpec{Destinations: []string{"d"}}, make(trial.Fates, 1))
			if !errors.Is(err, driver.ErrBlocked) || !says(err.Error()) {
				t.Errorf("another: %v", err)
			}
		})
	}
}

// TestExpiredMessagesAreCounted sends messages with a time to live, without weir.
func TestExpiredMessagesAreCounted(t *testing.T) {
	s := shared.Up(t, 1)
	plain := must.Get(client.Dial(t.Context(), "amqp://"+s.Address[0], &client.ConnOptions{SASLType: client.SASLTypePlain("weir", "weir")}))(t)
	t.Cleanup(func() { _ = plain.Close() })
	session := must.Get(plain.NewSession(t.Context(), nil))(t)
	to := must.Get(session.NewSender(t.Context(), "expiring", nil))(t)
	const n = 20
	for range n {
		must.Do(t, to.Send(t.Context(), &client.Message{Header: &client.MessageHeader{Durable: true, TTL: time.Millisecond}, Value: "x"}, nil))
	}
	c := trial.Opened(t, Definition(), driver.Run{Existing: true}, s.Options)
	t.Cleanup(trial.NewLog().Consume(t, c, driver.ConsumerSpec{Destinations: []string{"expiring"}}))
	if !trial.Eventually(func() bool {
		f, err := c.Facts(t.Context())
		return err == nil && len(f.Discarded) == 1 && f.Discarded[0].Messages == n
	}) {
		f, err := c.Facts(t.Context())
		t.Errorf("%+v, %v; want %d", f.Discarded, err, n)
	}
}
