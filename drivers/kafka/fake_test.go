//go:build unix

package kafka

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// Tests of behavior that a real broker cannot be made to show use a fake one.

func fake(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c := must.Get(kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...))(t)
	t.Cleanup(c.Close)
	return c
}

func TestRejectedMessageFailsWithContractError(t *testing.T) {
	f := fake(t)
	c := open(t, f.ListenAddrs(), driver.Run{ID: "r"}, nil, driver.Destination{Name: "d"})
	for _, w := range []struct {
		says *kerr.Error
		is   error
	}{
		{kerr.MessageTooLarge, driver.ErrTooLarge},
		{kerr.TopicAuthorizationFailed, driver.ErrAuth},
		{kerr.InvalidRecord, kerr.InvalidRecord},
	} {
		done := &fates{}
		p := trial.Produce(t, c, done, "d")
		h := f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: w.says, Count: -1})
		m := &driver.Message{Destination: "d", Payload: []byte("x")}
		p.Publish(t.Context(), m)
		if err := errors.Join(p.Flush(t.Context()), p.Close(t.Context())); err != nil {
			t.Error(err)
		}
		h.Remove()
		if errs := done.Errs[m]; len(errs) != 1 || !errors.Is(errs[0], w.is) {
			t.Errorf("%v: completed with %v; want %v", w.says, errs, w.is)
		}
	}
}

func TestUnacceptedMessageTimesOut(t *testing.T) {
	f := fake(t)
	c := open(t, f.ListenAddrs(), driver.Run{ID: "r"}, map[string]string{"delivery-timeout": "1s"}, driver.Destination{Name: "d"})
	done := &fates{}
	p := trial.Produce(t, c, done, "d")
	// An error that the client retries by itself.
	f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1})
	m := &driver.Message{Destination: "d", Payload: []byte("x")}
	p.Publish(t.Context(), m)
	if err := errors.Join(p.Flush(t.Context()), p.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if errs := done.Errs[m]; len(errs) != 1 || !errors.Is(errs[0], driver.ErrTimeout) {
		t.Errorf("completed with %v; want ErrTimeout", errs)
	}
}

func TestFailedCommitIsReportedAndRetried(t *testing.T) {
	for _, settle := range []driver.Settle{driver.SettleBatch, driver.SettleEach} {
		t.Run(settle.String(), func(t *testing.T) {
			f := fake(t)
			c := open(t, f.ListenAddrs(), driver.Run{ID: "r"}, nil, driver.Destination{Name: "d"})
			g := newGather()
			spec := driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: settle}
			consume(t, c, spec, g)
			f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.OffsetMetadataTooLarge})
			publish(t, c, "d", 0, 1, nil)
			eventually(t, "the failure", func() bool { return g.All(func(g *gather) bool { return len(g.Unsettled) == 1 && len(g.Faults) == 1 }) })
			if err := g.Faults[0]; !errors.Is(err, kerr.OffsetMetadataTooLarge) || !strings.Contains(err.Error(), "not settled") {
				t.Errorf("fault %v", err)
			}
			publish(t, c, "d", 1, 1, nil)
			eventually(t, "the next", func() bool { return g.All(func(g *gather) bool { return g.Settlements == 1 }) })
			if n, err := c.Backlog(t.Context(), "s", spec.Destinations); err != nil || n != 0 {
				t.Errorf("backlog %d, %v; want 0: a position covers all before it", n, err)
			}
		})
	}
}

func TestForbiddenGroupEndsRun(t *testing.T) {
	f := fake(t)
	c := open(t, f.ListenAddrs(), driver.Run{ID: "r"}, nil, driver.Destination{Name: "d"})
	x := must.Get(c.Consumer(t.Context(), driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}}))(t)
	f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Err: kerr.GroupAuthorizationFailed, TopLevel: true, Count: -1})
	if err := x.Run(t.Context(), newGather()); !errors.Is(err, driver.ErrAuth) {
		t.Errorf("Run returned %v; want ErrAuth", err)
	}
	if err := x.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCredentialsAndCertificates(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	must.Do(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	secure := kfake.TLS(&tls.Config{Certificates: srv.TLS.Certificates})
	for _, c := range []struct {
		name    string
		server  []kfake.Opt
		options map[string]string
		is      error // nil: it connects
		says    string
	}{
		{"plain", []kfake.Opt{kfake.EnableSASL(), kfake.Superuser("PLAIN", "me", "right")}, map[string]string{"user": "me", "password": "right"}, nil, ""},
		{"plain, wrong", []kfake.Opt{kfake.EnableSASL(), kfake.Superuser("PLAIN", "me", "right")}, map[string]string{"user": "me", "password": "canary"}, driver.ErrAuth, "SASL"},
		{
			"scram",
			[]kfake.Opt{kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "me", "right")},
			map[string]string{"user": "me", "password": "right", "sasl": "scram-sha-256"},
			nil, "",
		},
		{
			"scram, wrong",
			[]kfake.Opt{kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "me", "right")},
			map[string]string{"user": "me", "password": "canary", "sasl": "scram-sha-512"},
			driver.ErrAuth, "SASL",
		},
		{"none where some are asked for", []kfake.Opt{kfake.EnableSASL()}, nil, driver.ErrUnreachable, ""},
		{"tls", []kfake.Opt{secure}, map[string]string{"tls.ca": ca}, nil, ""},
		{"tls, unverified", []kfake.Opt{secure}, map[string]string{"tls.insecure": "true"}, nil, ""},
		{"tls of an unknown authority", []kfake.Opt{secure}, map[string]string{"address": "tls://"}, driver.ErrUnreachable, "certificate"},
		{"tls, not asked for", []kfake.Opt{secure}, nil, driver.ErrUnreachable, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fake(t, c.server...)
			if errors.Is(c.is, driver.ErrAuth) { // the fake broker hangs up, a real one answers
				f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.SASLAuthenticate}, Err: kerr.SaslAuthenticationFailed, TopLevel: true, Count: -1})
			}
			address := c.options["address"] + f.ListenAddrs()[0]
			delete(c.options, "address")
			begin := time.Now()
			conn, err := trial.Open(t, Definition(), driver.Run{ID: "r"}, trial.At([]string{address}, c.options))
			if err == nil {
				if err := conn.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if !errors.Is(err, c.is) || err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "canary")) {
				t.Errorf("%v; want %v with %q, and no password", err, c.is, c.says)
			}
			if d := time.Since(begin); d > time.Minute { // its own limits add up to 7 s
				t.Errorf("took %v", d)
			}
		})
	}
}

// TestPublishAllocatesNothingOfItsOwn limits allocations from Publish to Complete, including the
// client's: batches and requests are shared by many messages.
func TestPublishAllocatesNothingOfItsOwn(t *testing.T) {
	f := fake(t, kfake.BlackholeProduce())
	c := open(t, f.ListenAddrs(), driver.Run{ID: "r"}, nil, driver.Destination{Name: "d"})
	if n := testing.Benchmark(func(b *testing.B) { publishing(b, c) }).AllocsPerOp(); n > 0 {
		t.Errorf("%d allocations a message; want none", n)
	}
}

// BenchmarkPublish measures the whole path, with a fake broker in the same process that stores
// nothing, 1,024 in flight.
func BenchmarkPublish(b *testing.B) {
	f := fake(b, kfake.BlackholeProduce())
	publishing(b, open(b, f.ListenAddrs(), driver.Run{ID: "r"}, nil, driver.Destination{Name: "d"}))
}

func publishing(b *testing.B, c *conn) {
	const inFlight = 1024
	free := make(completed, inFlight)
	for range inFlight {
		free <- &driver.Message{Destination: "d", Payload: make([]byte, 64)}
	}
	p := must.Get(c.Producer(b.Context(), driver.ProducerSpec{Destinations: []string{"d"}, InFlight: inFlight}, free))(b)
	b.ReportAllocs()
	for b.Loop() {
		p.Publish(b.Context(), <-free)
	}
	must.Do(b, errors.Join(p.Flush(b.Context()), p.Close(b.Context())))
}

// completed holds the messages available for publishing.
type completed chan *driver.Message

func (c completed) Complete(m *driver.Message, err error) {
	if err != nil {
		panic(err) // nothing refuses in this test
	}
	c <- m
}

// TestSettleAutoCommitsAtTheInterval counts the client's commits: an infinite interval has none
// before the end, the shortest has many.
func TestSettleAutoCommitsAtTheInterval(t *testing.T) {
	for _, c := range []struct {
		interval string
		least    int64 // minimum of commits while the consumer runs
		most     int64
	}{
		{"1h", 0, 0},
		{"100ms", 3, math.MaxInt64},
	} {
		t.Run(c.interval, func(t *testing.T) {
			f := fake(t)
			conn := open(t, f.ListenAddrs(), driver.Run{ID: "r"}, map[string]string{"auto-commit-interval": c.interval}, driver.Destination{Name: "d"})
			var commits, polls atomic.Int64
			g := newGather()
			g.Refuse = func(driver.Delivery) bool {
				polls.Add(1)
				return false
			}
			spec := driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: driver.SettleAuto}
			stop := consume(t, conn, spec, g)
			f.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
				f.KeepControl()
				commits.Add(1)
				return nil, nil, false
			})
			sent := 0
			eventually(t, "the commits", func() bool { // the next tick commits what was polled
				publish(t, conn, "d", sent, 1, nil)
				sent++
				return sent >= 40 && commits.Load() >= c.least
			})
			eventually(t, "all", func() bool { return polls.Load() >= int64(sent) })
			before := commits.Load()
			if before > c.most {
				t.Errorf("%d commits within an interval of %s; want at most %d", before, c.interval, c.most)
			}
			stop()
			if commits.Load() <= before {
				t.Error("the end committed nothing")
			}
			if n, err := conn.Backlog(t.Context(), "s", spec.Destinations); err != nil || n != 0 {
				t.Errorf("backlog %d, %v; want 0", n, err)
			}
		})
	}
}

// TestTransactionsAllocateNothingOfTheirOwn applies the same limit to messages in transactions.
func TestTransactionsAllocateNothingOfTheirOwn(t *testing.T) {
	f := fake(t)
	c := open(t, f.ListenAddrs(), driver.Run{ID: "r"}, map[string]string{"transaction": "1024"}, driver.Destination{Name: "d"})
	if n := testing.Benchmark(func(b *testing.B) { publishing(b, c) }).AllocsPerOp(); n > 2 {
		t.Errorf("%d allocations a message; want the client's and the fake broker's only, less than 3", n)
	}
}

// TestGroupConsumersOpenSequentially uses a topic per consumer: a group with members accepts no
// offsets from non-members, so all of the run's topics must have one before.
func TestGroupConsumersOpenSequentially(t *testing.T) {
	f := fake(t)
	names := []string{"d", "e", "f"}
	var ds []driver.Destination
	for _, name := range names {
		ds = append(ds, driver.Destination{Name: name})
	}
	c := open(t, f.ListenAddrs(), driver.Run{ID: "r"}, nil, ds...)
	for i, name := range names {
		g := newGather()
		consume(t, c, driver.ConsumerSpec{Index: i, Subscription: "s", Destinations: []string{name}, Settle: driver.SettleEach}, g)
		publish(t, c, name, 0, 1, nil)
		eventually(t, "the message of "+name, func() bool { return g.All(func(g *gather) bool { return g.Settlements == 1 }) })
	}
}
