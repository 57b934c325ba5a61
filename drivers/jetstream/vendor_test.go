package jetstream

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/drivers/internal/trial"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/natsd"
)

// TestBothPathsDeliverTheSameBytes reuses one payload's memory for all messages, as the engine
// does: a publisher that read it after completion would send other bytes.
func TestBothPathsDeliverTheSameBytes(t *testing.T) {
	s := natstest.Start(t, natsd.Options{})
	const n = 50
	var want []string
	for i := range n {
		want = append(want, string(bytes.Repeat([]byte{byte(i), 0, 0xff}, i)))
	}
	for _, path := range []string{byWeir, byVendor} {
		t.Run(path, func(t *testing.T) {
			name := "d-" + path
			conn := open(t, s, map[string]string{"client-path": path}, trial.Plain(name))
			f := make(trial.Fates, 1)
			p := trial.ProduceBy(t, conn, driver.ProducerSpec{Destinations: []string{name}, InFlight: 4}, f)
			if _, own := p.(*vendorProducer); own != (path == byVendor) {
				t.Fatalf("client-path %s publishes by %T", path, p)
			}
			memory := make([]byte, 3*n)
			for _, w := range want {
				p.Publish(t.Context(), &driver.Message{Destination: name, Payload: memory[:copy(memory, w)]})
				must.Do(t, f.Next(t))
				clear(memory)
			}
			if err := p.Close(t.Context()); err != nil {
				t.Error(err)
			}
			got := receive(t, conn, driver.ConsumerSpec{Subscription: "s", Destinations: []string{name}}, n, nil)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("delivered (-want +got):\n%s", diff)
			}
		})
	}
}
