package rabbitmq

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

const secret = "wr0ng" // trial.Refuses looks for it

// says is a server that starts like an AMQP server with properties, and answers tune and open to
// anything.
func says(t *testing.T, properties map[string]string) string {
	t.Helper()
	long := func(b []byte, s string) []byte {
		return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	var table []byte
	for k, v := range properties {
		table = append(append(table, byte(len(k))), k...)
		table = long(append(table, 'S'), v)
	}
	start := long(append([]byte{0, 10, 0, 10, 0, 9}, long(nil, string(table))...), "PLAIN")
	start = long(start, "en_US")
	return trial.Serve(t, func(c net.Conn) {
		send := func(payload ...byte) {
			_, _ = c.Write(append(append([]byte{1, 0, 0}, binary.BigEndian.AppendUint32(nil, uint32(len(payload)))...), append(payload, 0xCE)...))
		}
		b := make([]byte, 8)
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		send(start...)
		for {
			head := make([]byte, 7)
			if _, err := io.ReadFull(c, head); err != nil {
				return
			}
			payload := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
			if _, err := io.ReadFull(c, payload); err != nil {
				return
			}
			switch payload[3] {
			case 11: // start-ok: tune
				send(0, 10, 0, 30, 7, 255, 0, 2, 0, 0, 0, 10)
			case 40: // open: open-ok
				send(0, 10, 0, 41, 0)
			case 50: // close: close-ok
				send(0, 10, 0, 51)
				return
			}
		}
	})
}

// TestLavinMQConfirmsReceived uses a server with LavinMQ's properties: nothing in RabbitMQ's
// documentation holds for what it stores.
func TestLavinMQConfirmsReceived(t *testing.T) {
	address := says(t, map[string]string{"product": "LavinMQ", "version": "2.3.0"})
	for confirm, want := range map[string]driver.Guarantee{"yes": driver.Received, "no": driver.Written} {
		c := open(t, driver.Run{ID: "lavin"}, map[string][]string{"address": {address}, "confirm": {confirm}})
		for _, k := range []queueKind{{kind: classic, durable: true, version: "1", replicas: 1}, {kind: quorum, durable: true, replicas: 3}} {
			if got := c.confirms(k); got != (driver.Confirms{Guarantee: want}) {
				t.Errorf("confirm %s, %s: %+v", confirm, k.kind, got)
			}
		}
	}
}

func TestOpenErrorsAreExplained(t *testing.T) {
	s := shared.Up(t, 1)
	address, manage := s.Address[0], strings.TrimPrefix(s.Options["management"][0], "http://")
	ca, key := trial.Certificate(t)
	other, _ := trial.Certificate(t)
	tlsAddress := trial.Encrypted(t, address, ca, key)
	put(t, s, "users/ann", map[string]any{"password": secret, "tags": ""})
	put(t, s, "vhosts/other", map[string]any{})
	var all sync.WaitGroup // some wait for seconds
	for _, tc := range []struct {
		name    string
		options map[string][]string
		is      error
		want    string
	}{
		{"the address of the HTTP interface", map[string][]string{"address": {manage}}, driver.ErrUnreachable, manage + ": "},
		{"one address of two", map[string][]string{"address": {address, "127.0.0.1:1"}}, driver.ErrUnreachable, "127.0.0.1:1: "},
		{"who accepts and says nothing", map[string][]string{"address": {trial.Silent(t)}}, driver.ErrUnreachable, "no answer in time"},
		{"a wrong password", map[string][]string{"address": {address}, "user": {"ann"}, "password": {"wrong-" + secret}}, driver.ErrAuth, "user ann"},
		{"a user who is not there", map[string][]string{"address": {address}, "user": {"bob"}}, driver.ErrAuth, "user bob"},
		{"a vhost that is not there", map[string][]string{"address": {address}, "vhost": {"nosuch"}}, driver.ErrUnsupported, "vhost nosuch not found"},
		{"a vhost that is not the user's", map[string][]string{"address": {address}, "vhost": {"other"}, "user": {"ann"}, "password": {secret}}, driver.ErrAuth, "refused for user 'ann'"},
		{"TLS where there is none", map[string][]string{"address": {"amqps://" + address}}, driver.ErrUnsupported, "speaks no TLS"},
		{"no TLS where it is wanted", map[string][]string{"address": {tlsAddress}}, driver.ErrUnreachable, ""},
		{"a certificate of nobody known", map[string][]string{"address": {"amqps://" + tlsAddress}}, driver.ErrUnreachable, "certificate signed by unknown authority"},
		{"authorities in a file that is not there", map[string][]string{"address": {tlsAddress}, "tls.ca": {ca + ".nosuch"}}, nil, "option tls.ca"},
		{"a management plugin where there is none", map[string][]string{"address": {address}, "management": {"127.0.0.1:1"}}, driver.ErrUnreachable, "option management"},
		{"a management plugin that is the broker", map[string][]string{"address": {address}, "management": {address}}, driver.ErrUnreachable, "option management"},
		{"a server that is too old", map[string][]string{"address": {says(t, map[string]string{"product": "RabbitMQ", "version": "3.7.28"})}}, driver.ErrUnsupported, "RabbitMQ 3.7 is too old (3.8 or later)"},
		{"a storage version that the server lacks", map[string][]string{"address": {address}, "classic-version": {"1"}}, driver.ErrUnsupported, "1: classic queues of RabbitMQ 4.0 have only version 2"},
		{"a server that is something else", map[string][]string{"address": {says(t, map[string]string{"product": "qpid"})}}, driver.ErrUnsupported, "is not a version of RabbitMQ"},
	} {
		all.Go(func() {
			trial.Refuses(t, Definition(), tc.options, trial.Mistake{Name: tc.name, Is: tc.is, Says: tc.want})
		})
	}
	all.Wait()

	t.Run("in another vhost, by a user of few rights", func(t *testing.T) {
		put(t, s, "permissions/other/ann", map[string]any{"configure": "^$", "write": ".*", "read": ".*"})
		o := options(s, "vhost", "other", "user", "ann", "password", secret, "management", "")
		c := open(t, driver.Run{}, o)
		if err := c.Declare(t.Context(), trial.Plain("d")); !errors.Is(err, driver.ErrAuth) || !strings.Contains(err.Error(), "403 ACCESS_REFUSED") {
			t.Errorf("declaring without the right: %v", err)
		}
		if _, err := trial.Open(t, Definition(), driver.Run{}, options(s, "vhost", "other", "user", "ann", "password", secret)); !errors.Is(err, driver.ErrAuth) || !strings.Contains(err.Error(), "monitoring") {
			t.Errorf("asking the management plugin without the right: %v", err)
		}
		put(t, s, "permissions/other/ann", map[string]any{"configure": ".*", "write": ".*", "read": ".*"})
		l := trial.NewLog()
		declared(t, c, 1)
		l.Consume(t, c, driver.ConsumerSpec{})
		if err := l.Publish(t, producerOf(t, c, l, "d"), "d", "hello"); err != nil {
			t.Error(err)
		}
		l.Until(t, "the message", func() bool { return len(l.Got) == 1 })
	})
	t.Run("with TLS, in another vhost, as hosted services have it", func(t *testing.T) {
		o := map[string][]string{"address": {"amqps://" + tlsAddress}, "tls.ca": {ca}, "user": {"ann"}, "password": {secret}, "vhost": {"other"}}
		trial.Hosted(t, Definition(), o,
			trial.Mistake{Name: "a wrong password", Set: []string{"password", "other-wr0ng"}, Is: driver.ErrAuth, Says: "user ann"},
			trial.Mistake{Name: "another authority", Set: []string{"tls.ca", other}, Is: driver.ErrUnreachable, Says: "certificate"},
			trial.Mistake{Name: "no TLS", Set: []string{"address", "amqp://" + tlsAddress, "tls.ca", ""}, Is: driver.ErrUnreachable},
		)
	})
}

func TestValidateNamesTheOption(t *testing.T) {
	trial.Refuses(t, Definition(), nil,
		trial.Mistake{Name: "a vhost in the address", Set: []string{"address", "127.0.0.1:1/vhost"}, Option: "address"},
		trial.Mistake{Name: "a plugin of another scheme", Set: []string{"management", "ftp://x:1"}, Option: "management"},
		trial.Mistake{Name: "a plugin without a port", Set: []string{"management", "x"}, Option: "management"},
		trial.Mistake{Name: "no user", Set: []string{"user", ""}, Option: "user"},
		trial.Mistake{Name: "no vhost", Set: []string{"vhost", ""}, Option: "vhost"},
		trial.Mistake{Name: "a key that is too long", Set: []string{"routing-key", strings.Repeat("x", 256)}, Option: "routing-key"},
		trial.Mistake{Name: "a memory", Set: []string{"server.memory", "much"}, Option: "server.memory"},
		trial.Mistake{Name: "a quorum queue that is not durable", Set: []string{"queue", quorum, "durable", "no"}, Option: "durable"},
	)
}
