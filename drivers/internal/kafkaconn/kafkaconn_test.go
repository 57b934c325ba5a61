package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
)

func TestGuaranteeFollowsSettings(t *testing.T) {
	c := func(g driver.Guarantee, n driver.Copies, s driver.Stable) driver.Confirms {
		return driver.Confirms{Guarantee: g, Copies: n, Stable: s}
	}
	const (
		one, quorum, all = driver.CopiesOne, driver.CopiesQuorum, driver.CopiesAll
		os, fsync        = driver.StableOS, driver.StableFsync
	)
	table := tableOf("kafka")
	if d := cmp.Diff(table, tableOf("kmq")); d != "" {
		t.Errorf("the pages of kafka and kmq differ (-kafka +kmq):\n%s", d)
	}
	for _, w := range []struct {
		acks     string
		replicas int
		insync   string
		flush    string
		want     driver.Confirms
	}{
		{"0", 3, "2", "1", c(driver.Written, one, driver.StableNone)},
		{"1", 1, "1", "9", c(driver.Received, one, os)},
		{"1", 1, "1", "1", c(driver.Persisted, one, fsync)},
		{"1", 3, "2", "1", c(driver.Received, one, fsync)},
		{"1", 3, "3", "9", c(driver.Received, one, os)},
		{"all", 1, "2", "9", c(driver.Received, one, os)}, // never more than exist
		{"all", 1, "1", "1", c(driver.Persisted, one, fsync)},
		{"all", 2, "1", "9", c(driver.Received, one, os)},
		{"all", 2, "2", "9", c(driver.Replicated, all, os)},
		{"all", 3, "1", "1", c(driver.Received, one, fsync)},
		{"all", 3, "2", "9", c(driver.Replicated, quorum, os)},
		{"all", 3, "2", "1", c(driver.Persisted, quorum, fsync)},
		{"all", 3, "3", "1", c(driver.Persisted, all, fsync)},
		{"all", 5, "2", "9", c(driver.Received, one, os)},
		{"all", 5, "3", "9", c(driver.Replicated, quorum, os)},
		{"all", 3, "", "", c(driver.Received, one, os)}, // a system that does not report it
	} {
		settings := map[string]string{}
		if w.insync != "" {
			settings[minISR], settings[flushMessages] = w.insync, w.flush
		}
		if d := cmp.Diff(w.want, table.Of(decide(w.acks, described{w.replicas, settings}))); d != "" {
			t.Errorf("acks %s, %d replicas, min.insync.replicas %q, flush.messages %q (-want +got):\n%s", w.acks, w.replicas, w.insync, w.flush, d)
		}
	}
}

// tableOf reads the guarantee table of a driver's page.
func tableOf(name string) driver.Confirmations {
	return driver.MustPage(os.DirFS(filepath.Join("..", "..", name))).Confirmations
}

func TestAddressesAreReadAndNeverRepeated(t *testing.T) {
	for _, c := range []struct {
		address, want string
		secure        bool
		fault         string
	}{
		{"127.0.0.1:9092", "127.0.0.1:9092", false, ""},
		{"broker", "broker:9092", false, ""},
		{"kafka://[::1]:1", "[::1]:1", false, ""},
		{"tls://broker:9093", "broker:9093", true, ""},
		{"http://broker", "", false, `scheme "http"`},
		{"kafka://me:canary@broker", "", false, "holds a user"},
		{":9092", "", false, "is not an address"},
		{"kafka://bro%ker", "", false, "is not an address"},
	} {
		var got string
		e, err := brokers.Parse(c.address)
		if err == nil {
			got = e.HostPort()
		}
		if got != c.want || e.Secure != c.secure || (err == nil) != (c.fault == "") {
			t.Errorf("%s: %q, %v, %v; want %q, %v, %q", c.address, got, e.Secure, err, c.want, c.secure, c.fault)
		}
		if err != nil && (!strings.Contains(err.Error(), c.fault) || strings.Contains(err.Error(), "canary")) {
			t.Errorf("%s: %v; want %q, and no password", c.address, err, c.fault)
		}
	}
	o := Defaults()
	o.Address = []string{"tls://a:1", "b:2"}
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "mixes") {
		t.Errorf("addresses with and without TLS: %v", err)
	}
}

func TestErrorsMapToContractErrors(t *testing.T) {
	for _, c := range []struct {
		err, is error
	}{
		{kerr.MessageTooLarge, driver.ErrTooLarge},
		{kerr.SaslAuthenticationFailed, driver.ErrAuth},
		{kgo.ErrRecordTimeout, driver.ErrTimeout},
		{kgo.ErrClientClosed, driver.ErrClosed},
		{kgo.ErrMaxBuffered, driver.ErrOverloaded},
		{kerr.NotEnoughReplicas, driver.ErrBlocked},
		{kerr.InvalidReplicationFactor, driver.ErrUnsupported},
		{context.DeadlineExceeded, driver.ErrTimeout},
		{io.EOF, driver.ErrDisconnected},
		{fmt.Errorf("write tcp 127.0.0.1:50312->127.0.0.1:9092: %w", syscall.EPIPE), driver.ErrDisconnected},
		{kerr.NotEnoughReplicas, kerr.NotEnoughReplicas},
	} {
		got := Cause(fmt.Errorf("wrapped: %w", c.err))
		if !errors.Is(got, c.is) || !errors.Is(got, c.err) {
			t.Errorf("%v became %v; want %v", c.err, got, c.is)
		}
		if strings.Contains(got.Error(), "50312") {
			t.Errorf("%v tells the local port", got)
		}
		if again := Cause(got); again.Error() != got.Error() {
			t.Errorf("%v became %v the second time", got, again)
		}
	}
	if err := Unanswered(kerr.NotEnoughReplicas); errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("an answer is not unreachable: %v", err)
	}
	if err := Unanswered(io.EOF); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("no answer is unreachable: %v", err)
	}
}

func TestDifferentNamesStayDifferent(t *testing.T) {
	run := driver.Run{ID: "r-1"}
	seen := map[string]string{}
	for _, d := range []string{"a", "a.b", "a_b", "a_2eb", "A", "a b", "ä", "a-b"} {
		topic, err := Topic(run, d)
		if err != nil || strings.Trim(topic, legal) != "" {
			t.Errorf("%q: topic %q, %v", d, topic, err)
		}
		if other, ok := seen[topic]; ok {
			t.Errorf("%q and %q have the topic %q", d, other, topic)
		}
		seen[topic] = d
	}
	for _, d := range []string{"", strings.Repeat("x", 250)} {
		if topic, err := Topic(run, d); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%.5q: topic %q, %v; want ErrUnsupported", d, topic, err)
		}
	}
	if g := Group(run, "r-1-s0"); g != "weir.r-1.s0" {
		t.Errorf("group %q", g)
	}
}

func TestTopicRetentionIsReported(t *testing.T) {
	for _, tt := range []struct {
		settings map[string]string
		want     []string
	}{
		{map[string]string{"retention.ms": "604800000", "retention.bytes": "-1", "cleanup.policy": "delete"}, nil}, // vendor default
		{map[string]string{"retention.ms": "-1"}, nil},
		{map[string]string{"retention.ms": "300", "retention.bytes": "1000", "cleanup.policy": "compact,delete"}, []string{
			"messages are deleted after 300 ms (retention.ms)", "a partition drops the oldest messages beyond 1000 bytes (retention.bytes)",
			"of each key only the latest message stays (cleanup.policy compact)",
		}},
	} {
		if d := cmp.Diff(tt.want, (&described{settings: tt.settings}).discards()); d != "" {
			t.Errorf("%v: %s", tt.settings, d)
		}
	}
}
