package amqp1conn

import (
	"errors"
	"testing"

	"github.com/weirmq/weir/driver"
)

func TestAuthErrorIncludesServerDetail(t *testing.T) {
	for said, want := range map[string]string{
		"SASL PLAIN auth failed with code 0x1: ":        driver.ErrAuth.Error() + ": SASL PLAIN auth failed with code 0x1",
		"SASL PLAIN auth failed with code 0x1: expired": driver.ErrAuth.Error() + ": SASL PLAIN auth failed with code 0x1: expired",
	} {
		err := words.Unreachable(errors.New(said))
		if !errors.Is(err, driver.ErrAuth) || err.Error() != want {
			t.Errorf("%q: %q, want %q", said, err, want)
		}
	}
}
