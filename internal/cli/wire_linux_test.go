package cli

import (
	ctls "crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd/natsdtest"
	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/internal/series"
	"github.com/weirmq/weir/result"
)

// loopbackCertificate returns a certificate for 127.0.0.1.
func loopbackCertificate(t *testing.T) ctls.Certificate {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.TLS.Certificates[0]
}

// wiredRun runs weir with one message in flight, and returns its result.
func wiredRun(t *testing.T, args ...string) *result.Result {
	t.Helper()
	r := wired(t, append([]string{"--rate", "max", "--in-flight", "1", "--measure", "3s"}, args...)...)
	if r.Wire == nil || r.Wire.Send == nil || r.Wire.E2E == nil {
		t.Fatalf("%+v: want parts of send and e2e", r.Wire)
	}
	return r
}

// wired runs weir in a process of its own with --wire on, and returns its result.
func wired(t *testing.T, args ...string) *result.Result {
	t.Helper()
	needs.Time(t)
	if err := series.CheckWire(); err != nil {
		needs.Host(t, "ebpf", err)
	}
	binary := must.Get(os.Executable())(t)
	dir := t.TempDir()
	self, out := filepath.Join(dir, "weir"), filepath.Join(dir, "r")
	must.Do(t, os.Symlink(binary, self))
	cmd := exec.CommandContext(t.Context(), self, append([]string{
		"run", "--wire", "on", "--warmup", "500ms", "--quiet", "--out", out,
	}, args...)...)
	if said, err := cmd.CombinedOutput(); err != nil && cmd.ProcessState.ExitCode() != int(Invalid) {
		t.Fatalf("%v: %s", err, said)
	}
	saved := must.Get(result.Read(out))(t)
	return saved.Result
}

// TestNetworkLatencyIsInTheMiddle: a message passes a network of 20 ms twice.
func TestNetworkLatencyIsInTheMiddle(t *testing.T) {
	networked(t)
	const latency = 20_000_000
	r := wired(t, "--driver", "nats", "--rate", "200/s", "--network.latency", "20ms", "--measure", "4s")
	if r.Wire == nil || r.Wire.E2E == nil {
		t.Fatalf("%+v: want parts of e2e", r.Wire)
	}
	p := r.Wire.E2E
	if middle := p.System.Percentile(50).NS; middle < 2*latency {
		t.Errorf("network and system took %d ns in the median", middle)
	}
	for name, d := range map[string]*result.Dist{"waiting": p.Held, "sending": p.HostOut, "receiving": p.HostIn} {
		if ns := d.Percentile(50).NS; ns >= latency {
			t.Errorf("%s took %d ns in the median: the network's time is in it", name, ns)
		}
	}
}

// hiddenExact checks that the parts of nearly all messages are known exactly though TLS hides them, and that
// they add up to the latency.
func hiddenExact(t *testing.T, r *result.Result) {
	t.Helper()
	if !r.Wire.Encrypted {
		t.Error("the result does not say that TLS hides the messages")
	}
	for _, x := range []struct {
		what  string
		parts *result.WireParts
		all   *result.Dist
		exact float64 // least share
	}{
		{"send", r.Wire.Send, r.Latency.Send.Service, 0.8},
		{"e2e", r.Wire.E2E, r.Latency.E2E.Service, 0.2}, // a delivery may come when the next message has left
	} {
		p := x.parts
		if p.Sampled < 100 || float64(p.Exact) < x.exact*float64(p.Sampled) {
			t.Errorf("%s: %d of %d messages are known exactly", x.what, p.Exact, p.Sampled)
		}
		sum, known := 0.0, false
		for _, d := range []*result.Dist{p.Held, p.HostOut, p.System, p.HostIn} {
			if d.MeanNS != nil {
				sum, known = sum+*d.MeanNS, true
			}
		}
		// A sample's mean: host out includes what the client does before it writes.
		if mean := x.all.MeanNS; !known || mean == nil || sum < *mean/3 || sum > *mean*3 {
			t.Errorf("%s: the parts' means add up to %.0f ns; the latency has %v", x.what, sum, mean)
		}
		if p.System.Percentile(50).NS <= 0 {
			t.Errorf("%s: wire and system took %d ns", x.what, p.System.Percentile(50).NS)
		}
	}
}

// TestWireSeesThroughTLS uses an embedded server.
func TestWireSeesThroughTLS(t *testing.T) {
	certificate := loopbackCertificate(t)
	dir := t.TempDir()
	s := natsdtest.Start(t, func(o *server.Options) {
		o.TLS, o.TLSTimeout, o.JetStream, o.StoreDir = true, 60, true, dir
		o.TLSConfig = &ctls.Config{Certificates: []ctls.Certificate{certificate}, MinVersion: ctls.VersionTLS12}
	})
	hiddenExact(t, wiredRun(t, "--driver", "jetstream", "--address", "tls://"+s.Addr().String(), "--option", "tls.insecure=yes"))
}
