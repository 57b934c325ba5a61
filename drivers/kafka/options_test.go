package kafka

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
)

func TestFaultsInTheSettings(t *testing.T) {
	for _, c := range []struct {
		set  []string // alternating names and values
		want []string // one per fault
	}{
		{nil, nil},
		{[]string{"acks", "1"}, nil},
		{[]string{"acks", "1", "idempotence", "on"}, []string{"idempotence: needs acks: all"}},
		{[]string{"requests-in-flight", "5"}, []string{"requests-in-flight: is 5 with idempotence"}},
		{[]string{"requests-in-flight", "5", "idempotence", "off"}, nil},
		{[]string{"transaction", "100"}, nil},
		{[]string{"transaction", "100", "acks", "1"}, []string{"transaction: needs idempotence"}},
		{[]string{"server.heap", "lots", "server.flush-messages", "-1"}, []string{`server.heap: "lots" is not a size`, "server.flush-messages"}},
		{[]string{"address", "ftp://x", "user", "me"}, []string{`address: scheme "ftp"`, "user: is given without password"}},
	} {
		cfg := must.Get(trial.Configure(Definition(), nil, c.set...))(t)
		said := fmt.Sprint(driver.Check(cfg))
		if len(c.want) == 0 && said != "<nil>" || len(c.want) > 0 && strings.Count(said, "\n")+1 != len(c.want) {
			t.Errorf("%v: %s; want %q", c.set, said, c.want)
		}
		for _, w := range c.want {
			if !strings.Contains(said, w) {
				t.Errorf("%v: %s; want %q", c.set, said, w)
			}
		}
	}
}
