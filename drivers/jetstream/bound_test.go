package jetstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
)

// bounded starts a server with an account that has the limits of a hosted plan: every stream needs
// a bound of at most 1 MiB, and all together may use 1.5 MiB.
func bounded(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	text := fmt.Sprintf(`
		jetstream: {store_dir: %q, max_file: 64MB, max_mem: 64MB}
		accounts: {PLAN: {
			jetstream: {max_file: 1536KB, max_mem: 1536KB, disk_max_stream_bytes: 1MB, mem_max_stream_bytes: 1MB, max_bytes_required: true}
			users: [{user: weir, password: weir}]
		}}`, t.TempDir())
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	o := must.Get(server.ProcessConfigFile(file))(t)
	s := natsdtest.Start(t, func(into *server.Options) {
		o.Host, o.Port, o.NoSigs, o.NoLog = into.Host, into.Port, true, true
		*into = *o
	})
	return s.ClientURL()
}

func TestAccountRequiresStreamLimit(t *testing.T) {
	t.Parallel()
	address := bounded(t)
	d := trial.Plain("d")
	for _, c := range []struct {
		name, storage, bound string
		want                 error
		says                 string
	}{
		{"no bound", "file", "0", driver.ErrUnsupported, "option max-bytes is not set, and this account demands a bound"},
		{"a bound over that of a stream", "file", "2MiB", driver.ErrUnsupported, "option max-bytes is 2MiB, more than this account lets a stream have"},
		{"a bound that it takes", "file", "1MiB", nil, ""},
		{"a bound that it takes, in memory", "memory", "1MiB", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := trial.Opened(t, Definition(), driver.Run{ID: "t"}, nil,
				"address", address, "user", "weir", "password", "weir", "storage", c.storage, "max-bytes", c.bound)
			t.Cleanup(func() { _ = conn.Delete(context.Background(), d) })
			err := conn.Declare(t.Context(), d)
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Fatalf("Declare: %v; want %v, %q", err, c.want, c.says)
			}
			if err != nil {
				return
			}
			if f, err := conn.Facts(t.Context()); err != nil || f.Settings["max_bytes"] != "1MiB" || f.Settings["discard"] != "old" ||
				!slices.Equal(f.Discards, []string{"a stream drops the oldest messages beyond 1MiB (max_bytes)"}) {
				t.Errorf("facts %+v, discards %q, %v; want max_bytes 1MiB, discard old", f.Settings, f.Discards, err)
			}
		})
	}
}

func TestStreamRetentionIsReported(t *testing.T) {
	t.Parallel()
	c := jetstream.StreamConfig{MaxAge: time.Second, MaxMsgs: 7, MaxMsgsPerSubject: 2}
	old := []string{
		"messages are deleted after 1s (max_age)", "a stream drops the oldest beyond 2 messages of a subject (max_msgs_per_subject)",
		"a stream drops the oldest beyond 7 messages (max_msgs)",
	}
	if d := discards(&c); !slices.Equal(d, old) {
		t.Errorf("%q; want %q", d, old)
	}
	c.Discard = jetstream.DiscardNew
	if d := discards(&c); !slices.Equal(d, old[:2]) {
		t.Errorf("a stream that refuses: %q; want %q", d, old[:2])
	}
}

func TestMaxBytesExceedingAccountLimit(t *testing.T) {
	t.Parallel()
	options := map[string][]string{"address": {bounded(t)}, "user": {"weir"}, "password": {"weir"}, "max-bytes": {"1MiB"}}
	c := trial.Opened(t, Definition(), driver.Run{ID: "t"}, options)
	trial.Declare(t, c, trial.Plain("d1"))
	err := c.Declare(t.Context(), trial.Plain("d2"))
	if !errors.Is(err, driver.ErrBlocked) || !strings.Contains(err.Error(), "option max-bytes is 1MiB for each of the streams") {
		t.Errorf("Declare: %v; want ErrBlocked, and the option max-bytes", err)
	}
}
