package fleet

import (
	"errors"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/internal/fleet/join"
)

// serverWith starts a NATS server that has so much space for streams.
func serverWith(t *testing.T, bytes int64) join.Address {
	t.Helper()
	s, err := natsserver.NewServer(&natsserver.Options{
		Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: bytes,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not listen")
	}
	a, err := join.Parse("nats://" + s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A server sets the space of a stream aside: of a small one coordinators take less,
// and one that gets none says so.
func TestCoordinatorsTakeTheSpaceThatAServerHas(t *testing.T) {
	t.Parallel()
	at := serverWith(t, 20<<30+300<<20)
	var got []int64
	for range 3 {
		f, err := Open(t.Context(), Options{Server: at, Dir: t.TempDir(), Version: ownVersion})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s, err := f.js.Stream(t.Context(), streamPrefix+f.session)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.CachedInfo().Config.MaxBytes)
	}
	if got[0] != 16<<30 || got[1] != 4<<30 || got[2] != 256<<20 {
		t.Errorf("the streams are of %d bytes at most", got)
	}
	var refused *jetstream.APIError
	_, err := Open(t.Context(), Options{Server: serverWith(t, 1<<20), Dir: t.TempDir(), Version: ownVersion})
	if err == nil || !strings.Contains(err.Error(), "the server has no 64 MiB on its disk") || !errors.As(err, &refused) {
		t.Errorf("without space: %v", err)
	}
}

// What a coordinator left behind that was killed is there for a week, and then no
// more.
func TestOldStreamsOfACoordinatorsFolderAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := Open(t.Context(), Options{Dir: dir, Version: ownVersion})
	if err != nil {
		t.Fatal(err)
	}
	first.cancel()
	first.side.Wait()
	first.disconnect()
	second, err := Open(t.Context(), Options{Dir: dir, Version: ownVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if _, err := second.js.Stream(t.Context(), streamPrefix+first.session); err != nil {
		t.Errorf("the stream of the first, just now: %v", err)
	}
	second.clear(t.Context(), time.Now().Add(reportsKept+time.Minute))
	if _, err := second.js.Stream(t.Context(), streamPrefix+first.session); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream of the first, after a week: %v", err)
	}
	if _, err := second.js.Stream(t.Context(), streamPrefix+second.session); err != nil {
		t.Errorf("its own, after a week: %v", err)
	}
}
