package mqtt

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	three3 "github.com/eclipse/paho.mqtt.golang"

	"github.com/eclipse/paho.golang/packets"
	five5 "github.com/eclipse/paho.golang/paho"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/names"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/sockets"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// versions lists the protocol versions that most tests use.
var versions = []string{version5, version3}

func open(t testing.TB, run driver.Run, system map[string][]string, options ...string) driver.Conn {
	t.Helper()
	return trial.Opened(t, Definition(), run, system, options...)
}

// put sends n messages and returns how many are confirmed.
func put(t testing.TB, p driver.Producer, f trial.Fates, n int) (confirmed int) {
	t.Helper()
	for i := range n {
		p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: fmt.Append(nil, i)})
	}
	for range n {
		if err := f.Next(t); err == nil {
			confirmed++
		} else if !errors.Is(err, driver.ErrDisconnected) {
			t.Error(err)
		}
	}
	return confirmed
}

// has returns the number of distinct messages received, and all faults.
func has(l *trial.Log) (int, error) {
	l.Lock()
	defer l.Unlock()
	return len(slices.Compact(slices.Sorted(slices.Values(l.Got)))), errors.Join(l.Faults...)
}

// times returns how often a message was received, and how often as redelivered.
func times(l *trial.Log, text string) (times, again int) {
	l.Lock()
	defer l.Unlock()
	for _, t := range l.Got {
		if t == text {
			times++
		}
	}
	return times, len(l.Again)
}

// subscribe runs a consumer until the end of the test. Its deliveries wait for hold, if not nil.
func subscribe(t testing.TB, c driver.Conn, hold chan struct{}) (*trial.Log, *consumer) {
	t.Helper()
	l := trial.NewLog()
	if hold != nil {
		l.OnDeliver = func([]driver.Delivery) error { <-hold; return nil }
	}
	l.Consume(t, c, driver.ConsumerSpec{Settle: driver.SettleEach})
	return l, known.Having(&driver.Inside(c).(*conn).ends, "s")[0].(*consumer)
}

// start starts a server with lines of configuration, in a folder, and returns its address.
func start(t testing.TB, dir string, lines ...string) (*served.Process, map[string][]string) {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", served.FreePorts(t, 1)[0])
	host, port, _ := net.SplitHostPort(address)
	file := filepath.Join(dir, "mosquitto.conf")
	text := strings.Join(append([]string{"listener " + port + " " + host, "user root", "persistence_location " + dir + "/", "log_dest none"}, lines...), "\n") + "\n"
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	p := served.Start(t, Definition(), served.Spec{Program: "mosquitto", Args: []string{"-c", file}, Ready: func() error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			err = c.Close()
		}
		return err
	}})
	return p, map[string][]string{"address": {address}, "reconnect-wait": {"10ms"}}
}

// TestTheGuaranteeFollowsTheLevel requests each level, and uses a server that grants less than
// requested.
func TestTheGuaranteeFollowsTheLevel(t *testing.T) {
	s := shared.Up(t, 1)
	_, low := start(t, t.TempDir(), "allow_anonymous true", "max_qos 1")
	for _, version := range versions {
		for qos, want := range []driver.Guarantee{driver.Written, driver.Received, driver.Received} {
			c := open(t, driver.Run{}, s.Options, "version", version, "qos", fmt.Sprint(qos))
			f := trial.Facts(t, c)
			if f.Confirms != (driver.Confirms{Guarantee: want}) || f.Name != "mosquitto" || !strings.HasPrefix(f.Version, "2.") || f.Settings["granted-qos"] != fmt.Sprint(qos) {
				t.Errorf("version %s, QoS %d: %+v", version, qos, f)
			}
			if most := f.Settings["receive-maximum"]; version == version5 && most != "20" || version == version3 && most != "not told" {
				t.Errorf("version %s: receive-maximum %s", version, most)
			}
		}
		_, err := trial.Open(t, Definition(), driver.Run{ID: "low"}, low, "version", version, "qos", "2")
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "qos 2: the server grants 1") {
			t.Errorf("version %s: a server that grants less: %v", version, err)
		}
	}
}

// TestCredentialsAndTLS uses a server that requires a password over TLS.
func TestCredentialsAndTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := trial.Certificate(t)
	// Created by mosquitto_passwd for user weir and password secret.
	const hash = "weir:$7$101$AdNFNh2NNoORBey1$W9+aPRs56gWl9ivNE7xOWFNMKhDdOBhEvWjvVm2MYIcprEJN39QaDzimRowf3a7eeg848sxgVXETKfO0syybgw==\n"
	passwords := filepath.Join(dir, "passwords")
	must.Do(t, os.WriteFile(passwords, []byte(hash), 0o600))
	_, options := start(t, dir, "allow_anonymous false", "password_file "+passwords, "certfile "+cert, "keyfile "+key)
	options["address"][0] = "mqtts://" + options["address"][0]
	for _, version := range versions {
		for _, test := range []struct {
			user, password, ca string
			is                 error
		}{
			{"weir", "secret", cert, nil},
			{"weir", "wrong", cert, driver.ErrAuth},
			{"", "", cert, driver.ErrAuth},
			{"weir", "secret", "", driver.ErrUnreachable}, // the host does not trust the certificate
		} {
			cfg := must.Get(trial.Configure(Definition(), options, "version", version, "user", test.user, "tls.ca", test.ca))(t)
			if test.password != "" {
				must.Do(t, driver.SetSecret(cfg, "password", driver.NewSecret(test.password, "test")))
			}
			c, err := driver.Open(t.Context(), Definition(), cfg, driver.Run{ID: "auth" + names.Token(version)})
			if !errors.Is(err, test.is) || err == nil && test.is != nil || err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("version %s, user %q, password %q: %v", version, test.user, test.password, err)
			}
			if err != nil {
				continue
			}
			x, _ := subscribe(t, c, nil)
			p, f := trial.Producer(t, c, "d")
			if n := put(t, p, f, 100); n != 100 || !trial.Eventually(func() bool { n, _ := has(x); return n == 100 }) {
				t.Errorf("version %s, over TLS: %d confirmed", version, n)
			}
		}
	}
}

// steal makes a server drop a client's connection, by briefly connecting another client with its
// ID.
func steal(t *testing.T, address, id string) {
	t.Helper()
	k := three3.NewClient(three3.NewClientOptions().AddBroker("tcp://" + address).SetClientID(id).SetCleanSession(false).SetProtocolVersion(4))
	if token := k.Connect(); token.Wait() && token.Error() != nil {
		t.Fatal(token.Error())
	}
	k.Disconnect(100)
}

// TestASessionOutlivesItsConnection breaks a consumer's connection: messages sent meanwhile wait
// and are delivered after the reconnect.
func TestASessionOutlivesItsConnection(t *testing.T) {
	s := shared.Up(t, 1)
	for _, version := range versions {
		for _, qos := range []string{"1", "2"} {
			c := open(t, driver.Run{}, s.Options, "version", version, "qos", qos, "reconnect-wait", "300ms")
			x, inside := subscribe(t, c, nil)
			p, f := trial.Producer(t, c, "d")
			steal(t, s.Address[0], inside.plan.id)
			if !trial.Eventually(func() bool { _, err := has(x); return errors.Is(err, driver.ErrDisconnected) }) {
				t.Fatalf("version %s, QoS %s: no fault", version, qos)
			}
			if n := put(t, p, f, 100); n != 100 {
				t.Errorf("%d confirmed", n)
			}
			trial.Eventually(func() bool { n, _ := has(x); return n == 100 })
			trial.Drained(t, c, "s", "d")
			for i := range 100 {
				if times, _ := times(x, fmt.Sprint(i)); times != 1 {
					t.Errorf("version %s, QoS %s: message %d came %d times", version, qos, i, times)
				}
			}
		}
	}
}

// TestExactlyOnceNeedsVersionFive breaks the connection during delivery of a QoS 2 message: the
// server resends it, and only the version 5 client recognizes it.
func TestExactlyOnceNeedsVersionFive(t *testing.T) {
	s := shared.Up(t, 1)
	for version, want := range map[string]int{version5: 1, version3: 2} {
		c := open(t, driver.Run{}, s.Options, "version", version, "qos", "2", "reconnect-wait", "10ms")
		hold := make(chan struct{})
		x, inside := subscribe(t, c, hold)
		p, f := trial.Producer(t, c, "d")
		if n := put(t, p, f, 1); n != 1 || !trial.Eventually(func() bool { n, _ := has(x); return n == 1 }) {
			t.Fatalf("version %s: %d confirmed", version, n)
		}
		steal(t, s.Address[0], inside.plan.id)
		close(hold)
		trial.Eventually(func() bool { _, lost := has(x); return lost != nil })
		trial.Drained(t, c, "s", "d")
		if times, again := times(x, "0"); times != want || again != want-1 {
			t.Errorf("version %s: the message came %d times, %d of them flagged as redelivered", version, times, again)
		}
	}
}

// TestClosedConsumersShareIsLost ends one of two consumers of a shared subscription: messages
// already assigned to it do not go to the other.
func TestClosedConsumersShareIsLost(t *testing.T) {
	s := shared.Up(t, 1)
	for _, version := range versions {
		c := open(t, driver.Run{}, s.Options, "version", version)
		hold := make(chan struct{})
		slow, quick := trial.NewLog(), trial.NewLog()
		slow.OnDeliver = func([]driver.Delivery) error { <-hold; return nil }
		stop := slow.Consume(t, c, driver.ConsumerSpec{Settle: driver.SettleEach})
		quick.Consume(t, c, driver.ConsumerSpec{Settle: driver.SettleEach, Index: 1})
		p, f := trial.Producer(t, c, "d")
		if n := put(t, p, f, 100); n != 100 || !trial.Eventually(func() bool { n, _ := has(quick); return n == 50 }) {
			t.Errorf("version %s: %d confirmed", version, n)
		}
		ends := known.Having(&driver.Inside(c).(*conn).ends, "s")
		go func() {
			defer close(hold)
			trial.Eventually(func() bool {
				return slices.ContainsFunc(ends, func(e end) bool { return e.(*consumer).leaving.Load() })
			})
		}()
		stop()
		trial.Drained(t, c, "s", "d")
		n, _ := has(slow)
		m, _ := has(quick)
		if n+m >= 100 {
			t.Errorf("version %s: %d and %d messages of 100 arrived", version, n, m)
		}
	}
}

// TestAConsumerEndsItsSession checks the server with a client of the same ID.
func TestAConsumerEndsItsSession(t *testing.T) {
	s := shared.Up(t, 1)
	for _, version := range versions {
		c := open(t, driver.Run{}, s.Options, "version", version)
		id := ""
		t.Run(version, func(t *testing.T) {
			_, inside := subscribe(t, c, nil)
			id = inside.plan.id
		})
		o := three3.NewClientOptions().AddBroker("tcp://" + s.Address[0]).SetClientID(id).SetCleanSession(false).SetProtocolVersion(4)
		k := three3.NewClient(o)
		token := k.Connect()
		if token.Wait(); token.Error() != nil || token.(*three3.ConnectToken).SessionPresent() {
			t.Errorf("version %s: the session of %s is there, %v", version, id, token.Error())
		}
		k.Disconnect(100)
		o.SetCleanSession(true)
		k = three3.NewClient(o)
		k.Connect().Wait()
		k.Disconnect(100)
	}
}

// TestServerPersistence stops a server that holds 80 confirmed messages for a consumer, which has
// 20 more. Messages saved at exit survive; a kill saves nothing.
func TestServerPersistence(t *testing.T) {
	for name, test := range map[string]struct {
		lines []string
		kill  bool
		want  int
	}{
		"memory, ended":          {nil, false, 20},
		"persistence, ended":     {[]string{"persistence true"}, false, 100},
		"persistence, killed":    {[]string{"persistence true"}, true, 20},
		"saved at once, killed":  {[]string{"persistence true", "autosave_on_changes true", "autosave_interval 1"}, true, 0},
		"persistence, ended, v3": {[]string{"persistence true"}, false, 100},
	} {
		t.Run(name, func(t *testing.T) {
			server, options := start(t, t.TempDir(), append(test.lines, "allow_anonymous true")...)
			if strings.HasSuffix(name, "v3") {
				options["version"] = []string{version3}
			}
			events := make(chan string, 100)
			c := open(t, driver.Run{Event: func(kind, text string) { events <- kind }}, options)
			hold := make(chan struct{})
			x, _ := subscribe(t, c, hold)
			p, f := trial.Producer(t, c, "d")
			if n := put(t, p, f, 100); n != 100 {
				t.Fatalf("%d confirmed", n)
			}
			stop := server.Stop
			if test.kill {
				stop = server.Kill
			}
			must.Do(t, stop())
			close(hold)
			if !trial.Eventually(func() bool { return put(t, p, f, 1) == 0 }) {
				t.Error("the producer does not notice")
			}
			must.Do(t, server.Start())
			if !trial.Eventually(func() bool { return len(events) >= 2 }) || <-events != "reconnect" {
				t.Fatal("the ends do not connect again")
			}
			trial.Drained(t, c, "s", "d")
			n, err := has(x)
			t.Logf("%d of 100 arrived; faults: %v", n, err)
			if test.want > 0 && n != test.want || err == nil {
				t.Errorf("%d messages arrived, want %d", n, test.want)
			}
		})
	}
}

// TestBrokerCountsDroppedMessages uses a consumer that accepts nothing, and a queue of 5.
func TestBrokerCountsDroppedMessages(t *testing.T) {
	_, options := start(t, t.TempDir(), "sys_interval 1", "max_queued_messages 5", "max_inflight_messages 1", "allow_anonymous true")
	for _, v := range versions {
		options["version"] = []string{v}
		c := open(t, driver.Run{}, options)
		total := func() uint64 {
			f, err := c.Facts(t.Context())
			if err != nil || len(f.Discarded) != 1 {
				t.Fatalf("facts %+v, %v; want the broker's count", f, err)
			}
			return f.Discarded[0].Messages
		}
		before := total()
		hold := make(chan struct{})
		x, _ := subscribe(t, c, hold)
		p, f := trial.Producer(t, c, "d")
		put(t, p, f, 100)
		var dropped uint64
		if !trial.Eventually(func() bool { dropped = total() - before; return dropped > 0 && dropped == total()-before }) {
			t.Fatalf("version %s: %d of 100 counted as dropped", v, dropped)
		}
		close(hold)
		trial.Drained(t, c, "s", "d")
		if n, _ := has(x); n == 0 || !trial.Eventually(func() bool { return uint64(n)+total()-before == 100 }) {
			t.Errorf("version %s: %d arrived, and %d are counted as dropped, of 100", v, n, total()-before)
		}
	}
}

// TestNamesOfTopics: a user's own topics are used unchanged.
func TestNamesOfTopics(t *testing.T) {
	s := shared.Up(t, 1)
	for _, version := range versions {
		c := open(t, driver.Run{Existing: true}, s.Options, "version", version, "shared", "no")
		for _, bad := range []string{"a/+", "#", "$SYS/x", strings.Repeat("x", 65536)} {
			trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{bad}}, bad, driver.ErrUnsupported, "")
		}
		x, _ := subscribe(t, c, nil)
		o := three3.NewClientOptions().AddBroker("tcp://" + s.Address[0]).SetClientID("plain")
		k := three3.NewClient(o)
		k.Connect().Wait()
		k.Publish("d", 1, false, "from outside").Wait()
		k.Disconnect(100)
		if !trial.Eventually(func() bool { n, _ := has(x); return n == 1 }) {
			t.Errorf("version %s: a message of another client does not come", version)
		}
	}
}

// TestInvalidSettings covers the faults that option bounds do not catch.
func TestInvalidSettings(t *testing.T) {
	for option, bad := range map[string]string{"address": "http://127.0.0.1:1", "qos": "3", "keep-alive": "1500ms", "max-inflight": "65536"} {
		_, err := trial.Open(t, Definition(), driver.Run{}, nil, option, bad)
		if e := (*driver.OptionError)(nil); !errors.As(err, &e) || e.Name != option {
			t.Errorf("%s %q: %v", option, bad, err)
		}
	}
	// A server that accepts but sends nothing.
	for _, version := range versions {
		trial.Refuses(t, Definition(), nil,
			trial.Mistake{Name: "silence, version " + version, Set: []string{"address", trial.Silent(t), "timeout", "1s", "version", version}, Is: driver.ErrUnreachable})
	}
}

// TestTheServersLimitOfPackets: version 5 rejects oversized messages before sending.
func TestTheServersLimitOfPackets(t *testing.T) {
	_, options := start(t, t.TempDir(), "allow_anonymous true", "max_packet_size 2000")
	c := open(t, driver.Run{}, options)
	trial.NoProducer(t, c, driver.ProducerSpec{Destinations: []string{"d"}, Largest: 2000}, "a producer of large messages", driver.ErrTooLarge, "")
	p, f := trial.Producer(t, c, "d")
	p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: make([]byte, 2000)})
	if err := f.Next(t); !errors.Is(err, driver.ErrTooLarge) {
		t.Errorf("a large message: %v", err)
	}
	if n := put(t, p, f, 1); n != 1 {
		t.Error("the next one is not confirmed")
	}
}

// TestMessageAllocatesOnlyInClient: sending a message allocates nothing beyond what the client does
// when it waits for the answer itself.
func TestMessageAllocatesOnlyInClient(t *testing.T) {
	s := shared.Up(t, 1)
	const rounds = 300
	ctx, body := t.Context(), make([]byte, 64)
	for _, version := range versions {
		c := open(t, driver.Run{ID: "budget"}, s.Options, "version", version)
		p, f := trial.Producer(t, c, "d")
		m := &driver.Message{Destination: "d", Payload: body}
		own := allocs(rounds, func() { p.Publish(ctx, m); <-f })
		inside := driver.Inside(c).(*conn)
		var set sockets.Set
		line := must.Get(inside.cfg.dial(ctx, &set, plan{complete: func(*driver.Message, error) {}}))(t)
		defer line.close(true)
		var plain float64
		switch k := line.client.(type) {
		case *five:
			socket := must.Get(net.Dial("tcp", inside.cfg.Address))(t)
			client := five5.NewClient(five5.ClientConfig{Conn: socket})
			must.Get(client.Connect(ctx, &five5.Connect{ClientID: "budget", CleanStart: true}))(t)
			plain = allocs(rounds, func() {
				_, _ = client.Publish(ctx, &five5.Publish{Topic: "weir/budget/d", QoS: 1, Payload: body})
			})
			_ = client.Disconnect(&five5.Disconnect{})
		case *three:
			plain = allocs(rounds, func() { k.client.Publish("weir/budget/d", 1, false, m.Payload).Wait() })
		}
		t.Logf("version %s: %v allocations a message, %v of the client's own", version, own, plain)
		if own > plain {
			t.Errorf("version %s: %v allocations a message, %v of the client's own", version, own, plain)
		}
	}
}

// allocs returns the minimum of several counts, because other activity in the process may add to
// one.
func allocs(rounds int, f func()) float64 {
	least := testing.AllocsPerRun(rounds, f)
	for range 3 {
		least = min(least, testing.AllocsPerRun(rounds, f))
	}
	return least
}

// TestADeliveryCostsNothing measures the driver's part of receiving a message.
func TestADeliveryCostsNothing(t *testing.T) {
	x := &consumer{conn: &conn{cfg: *Definition().New().(*Config)}, sources: map[string]int32{"d": 0}, sink: nowhere{}}
	body := make([]byte, 64)
	if n := testing.AllocsPerRun(100, func() { x.take("d", body, false) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// nowhere is a sink without any cost.
type nowhere struct{ driver.Sink }

func (nowhere) Deliver([]driver.Delivery) error { return nil }

func TestReasonsOfTheStandard(t *testing.T) {
	for code, want := range map[byte]error{packets.ConnackNotAuthorized: driver.ErrAuth, packets.PubackQuotaExceeded: driver.ErrOverloaded, 0x95: driver.ErrTooLarge} {
		if err := errorMap.Cause(reason(code)); !errors.Is(err, want) {
			t.Errorf("0x%02X: %v", code, err)
		}
	}
}

func TestPageGuaranteesMatchServers(t *testing.T) { served.Guarantees(t, Definition(), shared, "") }
