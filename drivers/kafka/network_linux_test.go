package kafka

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/needs"
	"github.com/weirmq/weir/result"
)

// TestNetworkAppliesToAdvertisedAddresses runs weir like a user: brokers advertise the address for
// clients, which would bypass a proxy in front of them. No message may be faster than the network.
func TestNetworkAppliesToAdvertisedAddresses(t *testing.T) {
	shared.Up(t, 1) // install it, or skip the test
	weir := filepath.Join(t.TempDir(), "weir")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", weir, "../../cmd/weir").CombinedOutput(); err != nil {
		t.Fatalf("building weir: %v\n%s", err, out)
	}
	const each = 20 * time.Millisecond
	cmd := exec.CommandContext(t.Context(), weir, "run", "--driver", "kafka", "--start", "process", "--latency", each.String(),
		"--rate", "100/s", "--warmup", "1s", "--measure", "2s", "--out", filepath.Join(t.TempDir(), "r"), "--json", "--quiet")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if text := said.String(); strings.Contains(text, "this host lends weir no network") {
		needs.Host(t, "tun", text)
	}
	var r result.Result
	if wrong := json.Unmarshal(out.Bytes(), &r); wrong != nil {
		t.Fatalf("%v, %v: %s", err, wrong, &said)
	}
	// If the host stalls for over a second, pacers leave messages unsent.
	if m := r.Messages; m.Sent == 0 || m.Sent+m.Unsent != 200 || m.Delivered != m.Sent || m.Lost != 0 {
		t.Fatalf("messages %+v; want 200 sent and delivered, none lost", m)
	}
	if e, s := *r.Latency.E2E.Response.MinNS, *r.Latency.Send.Service.MinNS; e < int64(2*each) || s < int64(2*each) {
		t.Errorf("the fastest message took %v, and %v until it was confirmed; want %v or more", time.Duration(e), time.Duration(s), 2*each)
	}
}
