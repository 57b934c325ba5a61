package redisconn

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redistest"
	"github.com/weirmq/weir/internal/must"
)

func TestServerAtClientLimitIsReported(t *testing.T) {
	s := redistest.Start(t, "--maxclients", "1")
	o := Defaults()
	o.Address = []string{s.Address}
	first := must.Get(Open(within(t), &o, driver.Run{ID: "r"}))(t)
	second, err := Open(within(t), &o, driver.Run{ID: "r"})
	if err == nil {
		_ = second.Close(within(t))
	}
	_ = first.Close(within(t))
	if !errors.Is(err, driver.ErrOverloaded) || !strings.Contains(err.Error(), "max number of clients") {
		t.Errorf("a client too many: %v", err)
	}
}

func TestServerWithoutTLSFailsHandshake(t *testing.T) {
	s := redistest.Start(t)
	o := Defaults()
	o.Address, o.TLS.Insecure = []string{s.Address}, true
	l, err := Open(within(t), &o, driver.Run{ID: "r"})
	if err == nil {
		_ = l.Close(within(t))
	}
	if !errors.Is(err, driver.ErrUnreachable) || !strings.Contains(err.Error(), "TLS handshake") {
		t.Errorf("TLS with a server that has none: %v", err)
	}
}

func TestTooLargeMessageIsRejected(t *testing.T) {
	s := redistest.Start(t, "--proto-max-bulk-len", "2mb")
	o := Defaults()
	o.Address = []string{s.Address}
	l := must.Get(Open(within(t), &o, driver.Run{ID: "r"}))(t)
	for n, refused := range map[int]bool{0: false, 1 << 20: false, 2 << 20: false, 2<<20 + 1: true} {
		err := l.CheckSize(within(t), n)
		if errors.Is(err, driver.ErrTooLarge) != refused || !refused && err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	_ = l.Close(within(t))
}
