//go:build systems

package amqp1

import (
	"errors"
	"testing"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// TestConformanceOfACluster starts three nodes once: for the suite, and then for the guarantee of a
// quorum queue on all of them.
func TestConformanceOfACluster(t *testing.T) {
	t.Run("RabbitMQ 4, three nodes", func(t *testing.T) {
		s := served.Up(t, Definition(), 3, served.With{Recipe: "rabbitmq"})
		conformRabbitMQ(t, s, 3, quorum)
		c := trial.Declared(t, Definition(), s.Options)
		three := driver.Destination{Name: "three", Partitions: 1, Replicas: 3}
		trial.Declare(t, c, three)
		four := driver.Destination{Name: "four", Partitions: 1, Replicas: 4}
		if err := c.Declare(t.Context(), four); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("four replicas on three nodes: %v", err)
		}
		if err := c.Delete(t.Context(), destination); err != nil { // has one replica
			t.Error(err)
		}
		want := driver.Confirms{Guarantee: driver.Persisted, Copies: driver.CopiesQuorum, Stable: driver.StableFsync}
		if f, err := c.Facts(t.Context()); err != nil || f.Confirms != want || f.Nodes != 3 || f.Settings["members"] != "3" {
			t.Errorf("%+v, %v; want %+v", f, err, want)
		}
		if err := c.Delete(t.Context(), three); err != nil {
			t.Error(err)
		}
	})
}
