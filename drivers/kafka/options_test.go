package kafka

import (
	"strings"
	"testing"

	"github.com/weirmq/weir/driver"
)

func TestFaultsInTheSettingsAreAllReported(t *testing.T) {
	for _, c := range []struct {
		set  map[string]string
		want []string // one for each fault
	}{
		{nil, nil},
		{map[string]string{"acks": "1"}, nil},
		{map[string]string{"acks": "1", "idempotence": "on"}, []string{"idempotence: needs acks: all"}},
		{map[string]string{"requests-in-flight": "5"}, []string{"requests-in-flight: is 5 with idempotence"}},
		{map[string]string{"requests-in-flight": "5", "idempotence": "off"}, nil},
		{map[string]string{"requests-in-flight": "-1"}, []string{"requests-in-flight: -1 (0 to 1000)"}},
		{
			map[string]string{"linger": "2m", "delivery-timeout": "1ms", "session-timeout": "1s", "fetch-max-wait": "1ms", "auto-commit-interval": "1ms"},
			[]string{"linger: 2m (0s to 1m)", "delivery-timeout", "session-timeout", "fetch-max-wait", "auto-commit-interval"},
		},
		{
			map[string]string{"batch-max-bytes": "100B", "fetch-min-bytes": "0B", "fetch-max-bytes": "1GiB", "min-insync": "-1", "flush-messages": "-1"},
			[]string{"batch-max-bytes: 100B (512B to 64MiB)", "fetch-min-bytes", "fetch-max-bytes", "min-insync: -1 (0 to 32767)", "flush-messages"},
		},
		{map[string]string{"transaction": "100"}, nil},
		{map[string]string{"transaction": "-1"}, []string{"transaction: -1 (0 or more)"}},
		{map[string]string{"transaction": "100", "acks": "1"}, []string{"transaction: needs idempotence"}},
		{map[string]string{"server.heap": "lots", "server.flush-messages": "-1"}, []string{`server.heap: "lots" is not a size`, "server.flush-messages"}},
		{map[string]string{"address": "ftp://x", "user": "me"}, []string{`address: scheme "ftp"`, "user: is given without password"}},
		{map[string]string{"metadata-min-age": "1ms"}, []string{"metadata-min-age"}},
	} {
		cfg := newConfig()
		for k, v := range c.set {
			if err := driver.SetOption(cfg, k, v); err != nil {
				t.Fatal(err)
			}
		}
		err := driver.Check(cfg)
		if err == nil != (len(c.want) == 0) {
			t.Errorf("%v: %v; want %q", c.set, err, c.want)
			continue
		}
		if err == nil {
			continue
		}
		if n := strings.Count(err.Error(), "\n") + 1; n != len(c.want) {
			t.Errorf("%v: %d faults; want %d:\n%v", c.set, n, len(c.want), err)
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%v: %v; want %q", c.set, err, w)
			}
		}
	}
}
