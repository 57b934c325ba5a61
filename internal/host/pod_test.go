package host

import (
	"net/netip"
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
		p := simulatedHost{now: with(server(), map[string]string{
			"proc/self/environ": x.environ, cpu + "online": online, "proc/self/status": "CapEff:\t0\nCpus_allowed_list:\t" + x.allowed + "\n",
		}), calls: goodCalls}
		for _, f := range p.examine() {
			if f.Name == "pod" && (f.Health != x.health || !strings.Contains(f.Found, x.found)) {
				t.Errorf("%q on %s: %s, %s; want %s, %s", x.environ, x.allowed, f.Health, f.Found, x.health, x.found)
			}
		}
	}
}

func TestSystemOnThePodsNode(t *testing.T) {
	address := func(text string) []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("10.2.0.9"), netip.MustParseAddr(text)}
	}
	for _, x := range []struct {
		pod    *pod
		health Health
		found  string
	}{
		{nil, Unknown, ""},
		{&pod{}, Healthy, "in no pod"},
		{&pod{in: true}, Unknown, "does not see which others share its node"},
		{&pod{in: true, asked: map[string]string{"NODE_IP": "10.0.0.5", "SYSTEM": "kafka:9092"}, system: address("10.0.0.6")}, Unknown, "agents.awayFrom"},
		{&pod{in: true, asked: map[string]string{"AWAY_FROM": "app=kafka", "NODE_IP": "10.0.0.5"}, system: address("10.0.0.6")}, Healthy, "no pod with app=kafka"},
		{&pod{in: true, asked: map[string]string{"AWAY_FROM": "app=kafka", "NODE_IP": "10.0.0.5", "SYSTEM": "kafka:9092"}, system: address("::ffff:10.0.0.5")}, Warn, "kafka:9092 is this node's address 10.0.0.5"},
		{&pod{in: true, asked: map[string]string{"NODE_IP": "fd00::5", "SYSTEM": "kafka"}, system: address("fd00::5")}, Warn, "kafka is this node's address fd00::5"},
	} {
		if f := checkNode(&observed{pod: x.pod}); f.Health != x.health || !strings.Contains(f.Found, x.found) {
			t.Errorf("%+v: %s, %s; want %s, %s", x.pod, f.Health, f.Found, x.health, x.found)
		}
	}
}

func TestPodResolvesTheSystem(t *testing.T) {
	for _, name := range []string{"10.0.0.5", "10.0.0.5:9092"} {
		p := &pod{asked: map[string]string{"SYSTEM": name}}
		if p.resolve(t.Context()); len(p.system) != 1 || p.system[0].Unmap().String() != "10.0.0.5" {
			t.Errorf("%s: %v", name, p.system)
		}
	}
	(*pod)(nil).resolve(t.Context())
}
