package jetstream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd"
)

// durablesOf returns the names of a stream's consumers.
func durablesOf(t *testing.T, js jetstream.JetStream, stream string) []string {
	t.Helper()
	s := must.Get(js.Stream(t.Context(), stream))(t)
	var names []string
	for name := range s.ConsumerNames(t.Context()).Name() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestUsersDurableResumesWithItsSettings(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natsd.Options{})
	js := theirs(t, s, map[string][]string{"events": {"events"}})
	fill(t, js, "events", 1, 10)
	theirs, err := js.CreateConsumer(t.Context(), "events", jetstream.ConsumerConfig{
		Durable: "their_own", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Second, MaxAckPending: 77,
		FilterSubject: "events", // equivalent to the whole stream
	})
	if err != nil {
		t.Fatal(err)
	}
	// A client took three, acknowledged one, and disappeared.
	batch := must.Get(theirs.FetchNoWait(3))(t)
	m := <-batch.Messages()
	must.Do(t, m.DoubleAck(t.Context()))
	conn := existing(t, s)
	spec := driver.ConsumerSpec{Subscription: "their_own", Durable: true, Destinations: []string{"events"}}
	got := receive(t, conn, spec, 9, nil)
	slices.Sort(got) // redelivered messages come between the others after ack-wait
	want := numbered(2, 10)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	f, err := conn.Facts(t.Context())
	if err != nil || f.Settings["ack_wait"] != "1s" || f.Settings["max_ack_pending"] != "77" {
		t.Errorf("facts %+v, %v; want the durable's own settings", f.Settings, err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"their_own"}, durablesOf(t, js, "events")); diff != "" {
		t.Errorf("durables afterwards (-want +got):\n%s", diff)
	}
}

func TestDurableLimitsAreRespected(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natsd.Options{})
	js := theirs(t, s, map[string][]string{"x": {"x"}})
	fill(t, js, "x", 1, 50)
	for name, is := range map[string]jetstream.ConsumerConfig{
		"batch": {MaxRequestBatch: 7}, "expires": {MaxRequestExpires: time.Second}, "bytes": {MaxRequestMaxBytes: 10_000},
	} {
		for _, settle := range []driver.Settle{driver.SettleEach, driver.SettleBatch} {
			is.Durable, is.AckPolicy = name+"_"+settle.String(), jetstream.AckExplicitPolicy
			must.Get(js.CreateConsumer(t.Context(), "x", is))(t)
			spec := driver.ConsumerSpec{Subscription: is.Durable, Durable: true, Destinations: []string{"x"}, Settle: settle}
			if diff := cmp.Diff(numbered(1, 50), receive(t, existing(t, s), spec, 50, nil)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", is.Durable, diff)
			}
		}
	}
}

func TestOneDurableCoversStreamsDestinations(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natsd.Options{})
	js := theirs(t, s, map[string][]string{"shop": {"shop.*"}, "other": {"other"}})
	fill(t, js, "shop.a", 1, 3)
	fill(t, js, "shop.b", 4, 6)
	fill(t, js, "shop.c", 100, 102)
	fill(t, js, "other", 7, 9)
	conn := existing(t, s)
	spec := driver.ConsumerSpec{Subscription: "work", Durable: true, Destinations: []string{"shop.a", "shop.b", "other"}}

	// Two competing consumers.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	both := endingAt(9, cancel)
	ended := make(chan error, 2)
	for i := range 2 {
		spec.Index = i
		x := must.Get(conn.Consumer(t.Context(), spec))(t)
		if i == 0 {
			if left, err := conn.Backlog(t.Context(), "work", spec.Destinations); err != nil || left != 9 {
				t.Errorf("backlog %d, %v; want 9", left, err)
			}
		}
		go func() { ended <- errors.Join(x.Run(ctx, both), x.Close(context.Background())) }()
	}
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Error(err)
	}
	slices.Sort(both.Got)
	if diff := cmp.Diff(numbered(1, 9), both.Got); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}

	// A consumer of only one destination would also receive the others' messages.
	spec.Destinations = []string{"shop.a"}
	if _, err := conn.Consumer(t.Context(), spec); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "name taken: durable work of stream shop takes shop.a, shop.b") {
		t.Errorf("a consumer of one of two destinations: %v; want ErrUnsupported, name taken", err)
	}
	spec.Destinations = []string{"shop", "shop.a"}
	if _, err := conn.Consumer(t.Context(), spec); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "all of stream shop, or some subjects of it") {
		t.Errorf("a stream and one of its subjects: %v; want ErrUnsupported", err)
	}
	spec.Subscription, spec.Destinations = "overlap", []string{"shop.a", "shop.*"}
	if _, err := conn.Consumer(t.Context(), spec); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("subjects that overlap: %v; want ErrUnsupported", err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, stream := range []string{"shop", "other"} {
		if diff := cmp.Diff([]string{"work"}, durablesOf(t, js, stream)); diff != "" {
			t.Errorf("durables of %s afterwards (-want +got):\n%s", stream, diff)
		}
	}
}

func TestNameConflictNamesExistingConsumer(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natsd.Options{})
	js := theirs(t, s, map[string][]string{"x": {"x.*"}})
	soon := time.Now().Add(time.Hour)
	explicit := jetstream.AckExplicitPolicy
	for _, c := range []struct {
		name string
		is   jetstream.ConsumerConfig
		want string
	}{
		{"all", jetstream.ConsumerConfig{AckPolicy: jetstream.AckAllPolicy}, "has ack policy all, and the way of settling needs explicit"},
		{"none", jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy}, "has ack policy none, and the way of settling needs explicit"},
		{"filter", jetstream.ConsumerConfig{AckPolicy: explicit, FilterSubject: "x.a"}, "takes x.a of the stream, not x.*"},
		{"filters", jetstream.ConsumerConfig{AckPolicy: explicit, FilterSubjects: []string{"x.a", "x.b"}}, "takes x.a, x.b of the stream"},
		{"headers", jetstream.ConsumerConfig{AckPolicy: explicit, HeadersOnly: true}, "delivers headers only"},
		{"slow", jetstream.ConsumerConfig{AckPolicy: explicit, ReplayPolicy: jetstream.ReplayOriginalPolicy}, "delivers at the pace at which messages came"},
		{"paused", jetstream.ConsumerConfig{AckPolicy: explicit, PauseUntil: &soon}, "is paused for "},
		{"hasty", jetstream.ConsumerConfig{AckPolicy: explicit, MaxRequestExpires: time.Millisecond}, "takes no pull request of a second"},
		{"groups", jetstream.ConsumerConfig{AckPolicy: explicit, PriorityPolicy: jetstream.PriorityPolicyPinned, PinnedTTL: time.Minute, PriorityGroups: []string{"g"}}, "has priority groups"},
	} {
		c.is.Durable = c.name
		if _, err := js.CreateConsumer(t.Context(), "x", c.is); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		conn := existing(t, s)
		_, err := conn.Consumer(t.Context(), driver.ConsumerSpec{Subscription: c.name, Durable: true, Destinations: []string{"x"}})
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "name taken: durable "+c.name+" of stream x "+c.want) {
			t.Errorf("%s: %v; want ErrUnsupported with %q", c.name, err, c.want)
		}
	}
	must.Get(js.CreateConsumer(t.Context(), "x", jetstream.ConsumerConfig{Name: "passing", AckPolicy: explicit, InactiveThreshold: time.Hour}))(t)
	must.Get(js.CreatePushConsumer(t.Context(), "x", jetstream.ConsumerConfig{Durable: "push", AckPolicy: explicit, DeliverSubject: "there"}))(t)
	for name, want := range map[string]string{"passing": "is not durable", "push": "is a push consumer", "a.b": "invalid consumer name", "a b": "invalid consumer name"} {
		_, err := existing(t, s).Consumer(t.Context(), driver.ConsumerSpec{Subscription: name, Durable: true, Destinations: []string{"x"}})
		if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want ErrUnsupported with %q", name, err, want)
		}
	}
}

// TestADurableIsBehindItsStream: a durable's new leader reported nothing pending while its stream
// had 1,332 more messages, which weir would have counted as lost.
func TestADurableIsBehindItsStream(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		delivered, first, last uint64
		deleted                int
		want                   uint64
	}{
		"a new leader that is behind":           {2655, 1, 3987, 0, 1332},
		"all were sent":                         {7500, 1, 7500, 0, 0},
		"the stream is empty":                   {0, 0, 0, 0, 0},
		"none was sent":                         {0, 1, 10, 0, 10},
		"the first are gone":                    {0, 8, 10, 0, 3},
		"all are gone":                          {4, 11, 10, 0, 0},
		"some are gone from between the others": {0, 1, 10, 4, 6},
		"the durable begins behind the end":     {20, 1, 10, 0, 0},
		"the stream's answer is the older one":  {12, 1, 10, 0, 0},
	} {
		d := &jetstream.ConsumerInfo{Delivered: jetstream.SequenceInfo{Stream: tt.delivered}}
		s := &jetstream.StreamState{FirstSeq: tt.first, LastSeq: tt.last, NumDeleted: tt.deleted}
		if got := behind(d, s); got != tt.want {
			t.Errorf("%s: %d behind; want %d", name, got, tt.want)
		}
	}
}
