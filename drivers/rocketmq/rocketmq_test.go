package rocketmq

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	client "github.com/apache/rocketmq-client-go/v2"
	receiving "github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/fifo"
	"github.com/weirmq/weir/drivers/internal/inflight"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

// spec describes a consumer of "d".
var spec = driver.ConsumerSpec{Subscription: "s", Destinations: []string{"d"}, Settle: driver.SettleBatch}

// TestGuaranteeFollowsBrokerSettings covers the settings of a master.
func TestGuaranteeFollowsBrokerSettings(t *testing.T) {
	with := func(pairs ...string) map[string]string {
		s := map[string]string{"brokerRole": "ASYNC_MASTER", "flushDiskType": "ASYNC_FLUSH", "inSyncReplicas": "1", "minInSyncReplicas": "1"}
		for i := 0; i < len(pairs); i += 2 {
			s[pairs[i]] = pairs[i+1]
		}
		return s
	}
	const role, flush, in, least = "brokerRole", "flushDiskType", "inSyncReplicas", "minInSyncReplicas"
	for what, tc := range map[string]struct {
		settings map[string]string
		servers  int
		want     driver.Confirms
	}{
		"one server":                              {with(), 1, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
		"one server that syncs":                   {with(flush, "SYNC_FLUSH"), 1, driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync}},
		"one server with a buffer of its own":     {with("transientStorePoolEnable", "true"), 1, driver.Confirms{Guarantee: driver.Received}},
		"a pair, some time later":                 {with(flush, "SYNC_FLUSH"), 2, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableFsync}},
		"a pair with the vendor's inSyncReplicas": {with(role, "SYNC_MASTER"), 2, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
		"a pair in sync":                          {with(role, "SYNC_MASTER", in, "2"), 2, driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesAll, Stable: driver.StableOS}},
		"a pair in sync, and the master syncs":    {with(role, "SYNC_MASTER", in, "2", flush, "SYNC_FLUSH"), 2, driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesAll, Stable: driver.StableOS}},
		"two of three":                            {with(role, "SYNC_MASTER", in, "2"), 3, driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesQuorum, Stable: driver.StableOS}},
		"two of four":                             {with(role, "SYNC_MASTER", in, "2"), 4, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
		"fewer where some are away":               {with(role, "SYNC_MASTER", in, "2", "enableAutoInSyncReplicas", "true"), 2, driver.Confirms{Guarantee: driver.Received, Stable: driver.StableOS}},
		"all in sync, two at least":               {with(role, "SYNC_MASTER", least, "2", "enableControllerMode", "true", "allAckInSyncStateSet", "true"), 2, driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesAll, Stable: driver.StableOS}},
	} {
		if got := page.Confirmations.Of(decide(tc.settings, tc.servers)); got != tc.want {
			t.Errorf("%s: %+v, want %+v", what, got, tc.want)
		}
	}
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	trial.Refuses(t, Definition(), nil,
		trial.Mistake{Name: "a path", Set: []string{"address", "127.0.0.1:9876/x"}, Option: "address", Says: "holds more"},
		trial.Mistake{Name: "a user alone", Set: []string{"user", "weir"}, Option: "password", Says: "go together"},
	)
}

// TestMalformedAnswerEndsRequest: anything may listen at the address.
func TestMalformedAnswerEndsRequest(t *testing.T) {
	for what, answer := range map[string][]byte{
		"a page of the web":               []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"a header longer than the answer": binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), 9),
		"no header":                       binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 4), 0),
		"nothing":                         nil,
	} {
		address := trial.Serve(t, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1<<10))
			_, _ = c.Write(answer)
		})
		_, err := trial.Open(t, Definition(), driver.Run{}, nil, "address", address, "timeout", "5s")
		if !errors.Is(err, driver.ErrUnreachable) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// FuzzAnswers: any server input is parsed or rejected, within the size limit.
func FuzzAnswers(f *testing.F) {
	frame := func(text, body string) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(4+len(text)+len(body)))
		return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text+body...)
	}
	f.Add(frame(`{"code":0,"flag":1,"opaque":1,"extFields":{"offset":"7"}}`, `{"brokerAddrTable":{"a":{"brokerAddrs":{0:"127.0.0.1:1",1:"127.0.0.1:2"},"brokerName":"a"}}}`))
	f.Add(frame(`{"code":17}`, ""))
	f.Add(frame(``, "{"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, body, err := read(bytes.NewReader(b))
		if err == nil && len(body) > len(b) {
			t.Errorf("%d bytes of %d: %+v", len(body), len(b), h)
		}
		var info struct {
			Table map[string]broker `json:"brokerAddrTable"`
		}
		_ = decode(body, &info) // rejects invalid input
		for _, b := range info.Table {
			_ = b.master()
		}
	})
}

// TestBrokerJSONWithNumericKeysParses: field names may be unquoted numbers.
func TestBrokerJSONWithNumericKeysParses(t *testing.T) {
	var b broker
	if err := decode([]byte(`{"brokerAddrs":{0:"127.0.0.1:1",12:"127.0.0.1:2"},"brokerName":"a"}`), &b); err != nil || b.master() != "127.0.0.1:1" || b.Servers[12] != "127.0.0.1:2" {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestUnstartedConsumerCloses: the client's own shutdown would panic.
func TestUnstartedConsumerCloses(t *testing.T) {
	c := trial.Declared(t, Definition(), servers.Up(t, 1).Options)
	x := must.Get(c.Consumer(t.Context(), spec))(t)
	if err := x.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// consume runs a consumer until the end of the test, and returns when it is ready.
func consume(t *testing.T, c driver.Conn) *trial.Log {
	t.Helper()
	l := trial.NewLog()
	l.Consume(t, c, spec)
	return l
}

// TestServerWithAuthentication: wrong credentials are refused, and right ones accepted. The server
// syncs, and reports so. While it is stalled, confirmations time out, for which the client would
// end the process; after a kill and restart, everything continues.
func TestServerWithAuthentication(t *testing.T) {
	def := Definition()
	s := served.Up(t, def, 1, served.With{Settings: map[string]string{"auth": "yes", "flush": "sync"}})
	for _, wrong := range [][]string{{"user", "weir", "password", "wrong"}, {"user", "other", "password", "weir"}} {
		if _, err := trial.Open(t, def, driver.Run{}, s.Options, wrong...); !errors.Is(err, driver.ErrAuth) || strings.Contains(err.Error(), "Signature") {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	c := trial.Declared(t, def, s.Options)
	f, err := c.Facts(t.Context())
	if want := (driver.Confirms{Guarantee: driver.Persisted, Stable: driver.StableFsync}); err != nil || f.Confirms != want || f.Version != "5.5.0" {
		t.Errorf("%+v, %v", f, err)
	}
	x := consume(t, c)
	p, fates := trial.Producer(t, c, "d")
	if n := fates.Confirmed(t, p, 10); n != 10 || !x.Has(func() bool { return len(x.Got) == 10 }) {
		t.Fatalf("%d of 10 confirmed, %d received", n, len(x.Got))
	}

	resume := must.Get(s.Stall())(t)
	p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("stalled")})
	if err := fates.Next(t); !errors.Is(err, driver.ErrTimeout) {
		t.Errorf("while the server stands still: %v", err)
	}
	resume()
	if n := fates.Confirmed(t, p, 10); n != 10 {
		t.Errorf("%d of 10 confirmed when it continued", n)
	}

	for _, pid := range s.Pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("killed")})
	if err := fates.Next(t); !errors.Is(err, driver.ErrTimeout) && !errors.Is(err, driver.ErrDisconnected) {
		t.Errorf("when the server was killed: %v", err)
	}
	must.Do(t, s.Restart())
	x.Lock()
	before := len(x.Got)
	x.Unlock()
	if !trial.Eventually(func() bool { return fates.Confirmed(t, p, 1) == 1 }) {
		t.Fatal("nothing is confirmed when it is back")
	}
	if !x.Has(func() bool { return len(x.Got) > before && len(x.Faults) > 0 }) {
		t.Errorf("%d received when it is back, %d before; %d faults", len(x.Got), before, len(x.Faults))
	}
}

// TestABrokerWaitsForItsFirstMetrics checks that waiting uses no CPU: with the vendor's default,
// one thread spins for ten seconds.
func TestABrokerWaitsForItsFirstMetrics(t *testing.T) {
	found := false
	for _, pid := range servers.Up(t, 1).Pids {
		stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, name := range stats {
			b, err := os.ReadFile(name)
			_, rest, ok := strings.Cut(string(b), "(TransactionFlus) ")
			if err != nil || !ok {
				continue
			}
			found = true
			f := strings.Fields(rest) // from the third on; the fourteenth and fifteenth are ticks of 10 ms
			user, err1 := strconv.Atoi(f[11])
			system, err2 := strconv.Atoi(f[12])
			if err := errors.Join(err1, err2); err != nil || user+system > 300 {
				t.Errorf("the thread has used %d0 ms of a core, %v", user+system, err)
			}
		}
	}
	if !found {
		t.Error("no broker has such a thread")
	}
}

// TestThreePairsStoreEachMessageTwice: with server.replication sync, a slave has each message.
// While all slaves are away, none is confirmed. A topic's queues are spread over the masters.
func TestThreePairsStoreEachMessageTwice(t *testing.T) {
	def := Definition()
	s := served.Up(t, def, 6, served.With{Settings: map[string]string{"replication": "sync", "flush": "sync"}})
	c := must.Get(trial.Open(t, def, driver.Run{}, s.Options))(t)
	defer func() { _ = c.Close(context.Background()) }()
	d := driver.Destination{Name: "d", Partitions: 4, Replicas: 1}
	must.Do(t, c.Declare(t.Context(), d))
	defer func() { _ = c.Delete(context.Background(), d) }()
	f, err := c.Facts(t.Context())
	if want := (driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesAll, Stable: driver.StableOS}); err != nil || f.Confirms != want || f.Nodes != 6 {
		t.Errorf("%+v, %v", f, err)
	}
	masters := slices.Clone(f.Leaders)
	slices.Sort(masters)
	if n := len(slices.Compact(masters)); len(f.Leaders) != 4 || n != 3 {
		t.Errorf("4 queues are led by %v", f.Leaders)
	}
	x := consume(t, c)
	p, fates := trial.Producer(t, c, "d")
	if n := fates.Confirmed(t, p, 100); n != 100 || !x.Has(func() bool { return len(x.Got) == 100 }) {
		t.Fatalf("%d of 100 confirmed, %d received", n, len(x.Got))
	}
	// The name server, then masters and slaves alternately.
	for i := 2; i < len(s.Pids); i += 2 {
		_ = syscall.Kill(s.Pids[i], syscall.SIGKILL)
	}
	p.Publish(t.Context(), &driver.Message{Destination: "d", Payload: []byte("alone")})
	if err := fates.Next(t); !errors.Is(err, driver.ErrTimeout) {
		t.Errorf("without the slaves: %v", err)
	}
}

// A stuck is the client's producer, whose call for one topic never returns.
type stuck struct {
	client.Producer
	topic   string
	release chan struct{}
}

func (s *stuck) SendAsync(ctx context.Context, f func(context.Context, *primitive.SendResult, error), ms ...*primitive.Message) error {
	if ms[0].Topic == s.topic {
		<-s.release
	}
	f(ctx, &primitive.SendResult{Status: primitive.SendOK}, nil)
	return nil
}

func (s *stuck) Shutdown() error { return nil }

// completions counts by destination.
type completions chan string

func (c completions) Complete(m *driver.Message, _ error) { c <- m.Destination }

// TestAStuckTopicDelaysNoOther makes the client wait for one topic's broker.
func TestAStuckTopicDelaysNoOther(t *testing.T) {
	done := make(completions, 20)
	s := &stuck{topic: "held", release: make(chan struct{})}
	p := &producer{client: s, Set: inflight.New[*driver.Message](done)}
	p.topics = must.Get(driver.NewTargets([]string{"held", "free"}, func(d string) (*topic, error) { return &topic{d, fifo.New[*slot]()}, nil }))(t)
	p.start()
	for range 5 {
		p.Publish(t.Context(), &driver.Message{Destination: "held"})
		p.Publish(t.Context(), &driver.Message{Destination: "free"})
	}
	for range 5 {
		if d := <-done; d != "free" {
			t.Fatalf("a message to %s is confirmed", d)
		}
	}
	close(s.release)
	if err := errors.Join(p.Flush(t.Context()), p.Close(t.Context())); err != nil || len(done) != 5 {
		t.Errorf("%v, %d of 5 messages to the other topic are confirmed", err, len(done))
	}
}

// A broken is the client's consumer, whose polls fail.
type broken struct {
	puller
	polls chan error
}

func (b *broken) Poll(ctx context.Context, _ time.Duration) (*receiving.ConsumeRequest, error) {
	select {
	case err := <-b.polls:
		return nil, err
	case <-ctx.Done():
		return nil, receiving.ErrNoNewMsg
	}
}

// faults records faults that a consumer survives.
type faults struct {
	driver.Sink
	all chan error
}

func (f faults) Fault(err error) { f.all <- err }

// TestErrorsOfPollsAreReported covers errors other than that there is nothing to receive.
func TestErrorsOfPollsAreReported(t *testing.T) {
	b := &broken{polls: make(chan error, 2)}
	why := errors.New("the consumer is not running")
	b.polls <- receiving.ErrNoNewMsg
	b.polls <- why
	c := &conn{cfg: Config{ReconnectWait: time.Millisecond}}
	x := &consumer{conn: c, client: b}
	ctx, cancel := context.WithCancel(t.Context())
	f, ended := faults{all: make(chan error, 2)}, make(chan struct{})
	go func() { x.poll(ctx, f); close(ended) }()
	if err := <-f.all; !errors.Is(err, why) {
		t.Errorf("reported %v, want %v", err, why)
	}
	cancel()
	<-ended
	if len(f.all) > 0 {
		t.Errorf("reported also %v", <-f.all)
	}
}

// The recipe has a master and a slave, which always flush: later, or at once.
func TestPageGuaranteesMatchServers(t *testing.T) {
	served.Guarantees(t, Definition(), servers, "",
		"received",
		"replicated: server.replication: sync to a majority",
		"replicated: server.replication: sync to a majority, server.flush: async or sync",
		"replicated: server.replication: sync",
	)
}
