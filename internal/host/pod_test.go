package host

import (
	"strings"
	"testing"
)

func TestPodIsGuaranteedWithOwnProcessors(t *testing.T) {
	const (
		in     = "KUBERNETES_SERVICE_HOST=10.0.0.1\x00"
		equal  = in + "POD_REQUESTS_CPU=2000\x00POD_LIMITS_CPU=2000\x00POD_REQUESTS_MEMORY=1\x00POD_LIMITS_MEMORY=1\x00"
		online = "0-7\n"
	)
	for _, x := range []struct {
		environ string
		allowed string
		health  Health
		found   string
	}{
		{"HOME=/\x00", "0-7", Healthy, "weir is in none"},
		{"", "0-7", Unknown, ""},
		{in, "0-7", Unknown, "POD_LIMITS_CPU"},
		{equal, "2-3", Healthy, "Guaranteed, with processors of its own"},
		{equal, "0-7", Warn, "Guaranteed, with 2 processors shared"},
		{strings.ReplaceAll(equal, "CPU=2000", "CPU=2500"), "2-3", Bad, "Guaranteed, with 2500 thousandths"},
		{strings.Replace(equal, "REQUESTS_CPU=2000", "REQUESTS_CPU=500", 1), "0-7", Bad, "not Guaranteed: requests 500 and may take 2000 (cpu)"},
		{strings.Replace(equal, "REQUESTS_MEMORY=1", "REQUESTS_MEMORY=0", 1), "0-7", Bad, "not Guaranteed: requests 0 and may take 1 (memory)"},
	} {
		p := patient{now: with(server(), map[string]string{
			"proc/self/environ": x.environ, cpu + "online": online, "proc/self/status": "CapEff:\t0\nCpus_allowed_list:\t" + x.allowed + "\n",
		}), calls: goodCalls}
		for _, f := range p.examine() {
			if f.Name == "pod" && (f.Health != x.health || !strings.Contains(f.Found, x.found)) {
				t.Errorf("%q on %s: %s, %s; want %s, %s", x.environ, x.allowed, f.Health, f.Found, x.health, x.found)
			}
		}
	}
}
