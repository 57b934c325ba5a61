package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
)

// open connects with options and declares destinations.
func open(t testing.TB, s *natstest.Server, options map[string]string, ds ...driver.Destination) driver.Conn {
	t.Helper()
	c := trial.Opened(t, Definition(), driver.Run{ID: "t"}, trial.At(s.Address, options))
	trial.Declare(t, c, ds...)
	return c
}

// inside returns the Conn behind the guard.
func inside(c driver.Conn) *conn { return driver.Inside(c).(*conn) }

func TestGuaranteeIsReadFromTheRunningServers(t *testing.T) {
	t.Parallel()
	type row struct {
		name     string
		options  map[string]string
		replicas int
		want     driver.Confirms
		sync     string
	}
	file, memory := map[string]string{"storage": "file"}, map[string]string{"storage": "memory"}
	one, quorum := driver.CopiesOne, driver.CopiesQuorum
	for _, c := range []struct {
		name   string
		server natsd.Options
		rows   []row
	}{
		{"one node", natsd.Options{SyncInterval: time.Minute}, []row{
			{"memory", memory, 1, driver.Confirms{Guarantee: driver.Received, Copies: one, Stable: driver.StableNone}, "1m0s"},
			{"file", file, 1, driver.Confirms{Guarantee: driver.Received, Copies: one, Stable: driver.StableOS}, "1m0s"},
		}},
		{"one node that always syncs", natsd.Options{SyncAlways: true}, []row{
			{"memory", memory, 1, driver.Confirms{Guarantee: driver.Received, Copies: one, Stable: driver.StableNone}, "always"},
			{"file", file, 1, driver.Confirms{Guarantee: driver.Persisted, Copies: one, Stable: driver.StableFsync}, "always"},
		}},
		{"three nodes", natsd.Options{Nodes: 3}, []row{
			{"memory", memory, 3, driver.Confirms{Guarantee: driver.Replicated, Copies: quorum, Stable: driver.StableNone}, "2m0s"},
			{"file", file, 3, driver.Confirms{Guarantee: driver.Replicated, Copies: quorum, Stable: driver.StableOS}, "2m0s"},
			{"file, one replica", file, 1, driver.Confirms{Guarantee: driver.Received, Copies: one, Stable: driver.StableOS}, "2m0s"},
		}},
		{"three nodes that always sync", natsd.Options{Nodes: 3, SyncAlways: true}, []row{
			{"file", file, 3, driver.Confirms{Guarantee: driver.Persisted, Copies: quorum, Stable: driver.StableFsync}, "always"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := natstest.Start(t, c.server)
			for _, r := range c.rows {
				t.Run(r.name, func(t *testing.T) {
					conn := open(t, s, r.options, driver.Destination{Name: "d", Partitions: 1, Replicas: r.replicas})
					f := trial.Facts(t, conn)
					if diff := cmp.Diff(r.want, f.Confirms); diff != "" {
						t.Errorf("confirms (-want +got):\n%s", diff)
					}
					if f.Settings["sync_interval"] != r.sync || f.Version == "" || f.Nodes != max(1, c.server.Nodes) {
						t.Errorf("facts %+v; want sync_interval %s, %d nodes", f, r.sync, max(1, c.server.Nodes))
					}
				})
			}
		})
	}
}

func TestUnknownServerSettingsWeakenGuarantee(t *testing.T) {
	s := natsdtest.Start(t, func(o *server.Options) {
		o.HTTPHost, o.HTTPPort = "127.0.0.1", server.RANDOM_PORT
		o.JetStream, o.StoreDir, o.SyncAlways = true, t.TempDir(), true
	})
	ordinary := &natstest.Server{Address: []string{s.ClientURL()}} // exports nothing
	for _, c := range []struct {
		name    string
		options map[string]string
		want    driver.Guarantee
		sync    string
	}{
		{"not asked", nil, driver.Received, "unknown (assumed not synced)"},
		{"asked at its monitoring address", map[string]string{"monitor": "http://" + s.MonitorAddr().String()}, driver.Persisted, "always"},
		{"asked where nobody is", map[string]string{"monitor": "http://127.0.0.1:1"}, driver.Received, "unknown (assumed not synced)"},
	} {
		f, err := open(t, ordinary, c.options, trial.Plain("d")).Facts(t.Context())
		if err != nil || f.Confirms.Guarantee != c.want || f.Settings["sync_interval"] != c.sync {
			t.Errorf("%s: %+v, %v; want %v, sync_interval %s", c.name, f, err, c.want, c.sync)
		}
	}
	if got := page.Confirmations.Of(known(jetstream.FileStorage, 3, false, false)).Guarantee; got != driver.Replicated {
		t.Errorf("three replicas, not known to sync: %v", got)
	}
	if got := page.Confirmations.Of(known(jetstream.FileStorage, 1, true, true)); got.Guarantee != driver.Received || got.Stable != driver.StableNone {
		t.Errorf("persist mode async on a server that syncs: %+v", got)
	}
}

func TestConnectionLossFailsMessagesInFlight(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natsd.Options{})
	d := trial.Plain("d")
	for _, c := range []struct {
		name    string
		timeout string
		after   func(resume func()) // called with the server stalled and a message in flight
		want    error
	}{
		{"no acknowledgement in time", "200ms", func(func()) {}, driver.ErrTimeout},
		{"the server gone", "30s", func(resume func()) {
			resume()
			if err := s.Restart(); err != nil {
				t.Error(err)
			}
		}, driver.ErrDisconnected},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := open(t, s, map[string]string{"ack-timeout": c.timeout, "reconnect-wait": "10ms"}, d)
			f := make(trial.Fates, 1<<16)
			p := trial.ProduceBy(t, conn, driver.ProducerSpec{Destinations: []string{"d"}, InFlight: 4}, f)
			resume := trial.Stalled(t, s.Stall)
			p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("x")})
			c.after(resume)
			// Before it was killed, the resumed server may have answered, possibly that the stream
			// no longer exists.
			if err := f.Next(t); !errors.Is(err, c.want) && (err != nil && !errors.Is(err, nats.ErrNoResponders) || !errors.Is(c.want, driver.ErrDisconnected)) {
				t.Errorf("completed with %v; want %v", err, c.want)
			}
			resume()
			// The late acknowledgement must not confirm another message.
			for range 8 {
				var err error
				for range 1000 { // until reconnected
					p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("y")})
					if err = f.Next(t); err == nil {
						break
					}
					time.Sleep(5 * time.Millisecond)
				}
				if err != nil {
					t.Fatalf("afterwards: %v", err)
				}
			}
			if err := p.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPublishBlockedOnNetworkRespectsContext(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natsd.Options{})
	conn := open(t, s, nil, trial.Plain("d"))
	f := make(trial.Fates, 1<<16)
	const most = 256 // of 1 MiB: more than the socket buffers hold
	p := trial.ProduceBy(t, conn, driver.ProducerSpec{Destinations: []string{"d"}, InFlight: most}, f)
	trial.Stalled(t, s.Stall)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	payload := make([]byte, 1<<20)
	var published atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range most {
			published.Add(1)
			p.Publish(ctx, &driver.Message{Destination: "d", Payload: payload})
			if ctx.Err() != nil {
				return
			}
		}
	}()
	// Publishing is blocked if nothing moves in seven checks: a busy host may stall it for one.
	for last, same := int64(-1), 0; same < 6; time.Sleep(100 * time.Millisecond) {
		n := published.Load()
		if n == most {
			t.Fatal("all were taken: Publish never waited")
		}
		if same++; n != last {
			same = 0
		}
		last = n
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("Publish has not returned")
	}
	if err := f.Next(t); !errors.Is(err, context.Canceled) && !errors.Is(err, driver.ErrDisconnected) {
		t.Errorf("the message that was stuck: %v; want the context's error", err)
	}
	closing, end := context.WithTimeout(t.Context(), time.Second)
	defer end()
	_ = p.Close(closing)
}

func TestPubAck(t *testing.T) {
	for _, c := range []struct {
		name, data string
		header     nats.Header
		want       error
	}{
		{"stored", `{"stream":"s", "seq":1}`, nil, nil},
		{"stored, fields in another order", `{"seq":1,"stream":"s"}`, nil, nil},
		{"too large", `{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"},"stream":"s","seq":0}`, nil, driver.ErrTooLarge},
		{"no room", `{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"s","seq":0}`, nil, driver.ErrOverloaded},
		{"too much in flight", `{"error":{"code":429,"err_code":10167,"description":"too many requests"},"stream":"s","seq":0}`, nil, driver.ErrOverloaded},
		{"nobody there", ``, nats.Header{"Status": {"503"}}, nats.ErrNoResponders},
		{"nothing", `{}`, nil, jetstream.ErrInvalidJSAck},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := answered(nil, &nats.Msg{Data: []byte(c.data), Header: c.header}, nil); !errors.Is(err, c.want) {
				t.Errorf("answered: %v; want %v", err, c.want)
			} else if c.name == "too much in flight" && !strings.Contains(err.Error(), "--in-flight") {
				t.Errorf("answered: %v; want the flag that bounds it", err)
			}
		})
	}
	if answered(nil, &nats.Msg{Data: []byte("no JSON")}, nil) == nil {
		t.Error("an acknowledgement of no JSON: no error")
	}
}

func TestRedeliveredIsReadFromTheReplySubject(t *testing.T) {
	for reply, want := range map[string]bool{
		"$JS.ACK.s.c.1.7.7.1700000000.0":              false,
		"$JS.ACK.s.c.2.7.8.1700000000.0":              true,
		"$JS.ACK._.acc.s.c.1.7.7.1700000000.0.rnd":    false,
		"$JS.ACK.hub.acc.s.c.11.7.17.1700000000.0.r":  true,
		"$JS.ACK.hub.acc.s.c.1.11.17.1700000000.22.r": false,
		"": false,
	} {
		if got := redelivered(reply); got != want {
			t.Errorf("redelivered(%q) = %v; want %v", reply, got, want)
		}
	}
}

func TestSettingsThatContradictEachOther(t *testing.T) {
	trial.Refuses(t, Definition(), nil,
		trial.Mistake{Name: "a monitor of another scheme", Set: []string{"monitor", "ftp://host:8222"}, Option: "monitor"},
		trial.Mistake{Name: "an interval of a server that always syncs", Set: []string{"server.sync-always", "yes", "server.sync-interval", "1s"}, Option: "server.sync-interval"},
	)
}

// count is a Completer that counts.
type count struct {
	room chan struct{}
	bad  chan error
}

func (c *count) Complete(_ *driver.Message, err error) {
	if err != nil {
		select {
		case c.bad <- err:
		default:
		}
	}
	<-c.room
}

// BenchmarkPublish compares this driver's acknowledgement matching with the client's asynchronous
// publisher and its ack handler, with 1,024 in flight, to a stream in memory.
func BenchmarkPublish(b *testing.B) {
	s := natstest.Start(b, natsd.Options{})
	d := trial.Plain("d")
	const inFlight = 1024
	payload := make([]byte, 64)
	b.Run("reply table", func(b *testing.B) {
		conn := open(b, s, map[string]string{"storage": "memory"}, d)
		done := &count{make(chan struct{}, inFlight), make(chan error, 1)}
		p := must.Get(conn.Producer(b.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: inFlight}, done))(b)
		m := &driver.Message{Destination: "d", Payload: payload} // shared: the driver stores nothing in it
		b.ReportAllocs()
		for b.Loop() {
			done.room <- struct{}{}
			p.Publish(b.Context(), m)
		}
		must.Do(b, p.Flush(b.Context()))
		b.StopTimer()
		_ = p.Close(b.Context())
		select {
		case err := <-done.bad:
			b.Fatal(err)
		default:
		}
	})
	b.Run("client's ack handler", func(b *testing.B) {
		conn := open(b, s, map[string]string{"storage": "memory"}, d)
		nc := must.Get(nats.Connect(s.Address[0]))(b)
		defer nc.Close()
		room := make(chan struct{}, inFlight)
		js := must.Get(jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(2*inFlight), jetstream.WithPublishAsyncTimeout(30*time.Second),
			jetstream.WithPublishAsyncAckHandler(func(jetstream.JetStream, *nats.Msg, *jetstream.PubAck) { <-room })))(b)
		subject := fmt.Sprintf("weir.%s.d", inside(conn).run.ID)
		b.ReportAllocs()
		for b.Loop() {
			room <- struct{}{}
			must.Get(js.PublishMsgAsync(&nats.Msg{Subject: subject, Data: payload}))(b)
		}
		<-js.PublishAsyncComplete()
	})
}
