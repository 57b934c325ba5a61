package redisconn

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/redistest"
)

func TestAServerThatHasTooManyClientsSaysSo(t *testing.T) {
	s := redistest.Start(t, "--maxclients", "1")
	o := Defaults()
	o.Address = []string{s.Address}
	first, err := Open(within(t), &o, driver.Run{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := Open(within(t), &o, driver.Run{ID: "r"})
	if err == nil {
		_ = second.Close(within(t))
	}
	_ = first.Close(within(t))
	if !errors.Is(err, driver.ErrOverloaded) || !strings.Contains(err.Error(), "max number of clients") {
		t.Errorf("a client too many: %v", err)
	}
}

func TestAServerWithoutTLSIsToldByTheHandshake(t *testing.T) {
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
