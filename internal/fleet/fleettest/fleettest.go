// Package fleettest has what tests of a fleet's packages share. Only tests import it.
package fleettest

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/measure"
)

// A Diary is a log that may be read while it is written.
type Diary struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (d *Diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.b.Write(p)
}

func (d *Diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.b.String()
}

// Log writes to the diary.
func (d *Diary) Log() *slog.Logger {
	return slog.New(slog.NewTextHandler(d, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Lines returns how many lines have all of the words.
func (d *Diary) Lines(words ...string) (n int) {
	for l := range strings.Lines(d.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(l, w) }) {
			n++
		}
	}
	return n
}

// Has waits until a line has all of the words.
func (d *Diary) Has(t testing.TB, words ...string) {
	t.Helper()
	must.Until(t, fmt.Sprintf("a line with %q", words), func() bool { return d.Lines(words...) > 0 })
}

// Refusals are the violations that a server reported to a client.
type Refusals struct{ diary Diary }

// Option has a client keep them.
func (r *Refusals) Option() nats.Option {
	return nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { fmt.Fprintln(&r.diary, err) })
}

// Said reports whether one of them has all of the words.
func (r *Refusals) Said(words ...string) bool { return r.diary.Lines(words...) > 0 }

// Keep makes a keep for a test.
func Keep(t testing.TB) *admission.Keep {
	t.Helper()
	return must.Get(admission.Open(t.TempDir(), time.Now()))(t)
}

// Same checks that two distributions have the same counts in the same buckets.
func Same(t testing.TB, what string, got, want *measure.Counts) {
	t.Helper()
	a := must.Get(got.AppendBinary(nil))(t)
	b := must.Get(want.AppendBinary(nil))(t)
	if !bytes.Equal(a, b) {
		t.Errorf("%s: %d values up to %d, want %d up to %d, in the same buckets", what, got.Total(), got.Max(), want.Total(), want.Max())
	}
}

// MeasuredIn is what an agent measured in its nth second.
func MeasuredIn(n int) *measure.Interval {
	iv := &measure.Interval{From: int64(n-1) * 1e9, To: int64(n) * 1e9}
	iv.Kinds[measure.E2EService][measure.Measure].Add(int64(n)*1000, uint64(n))
	iv.Counters[measure.Measure].Confirmed, iv.Window.Confirmed = uint64(n), uint64(3*n)
	return iv
}
