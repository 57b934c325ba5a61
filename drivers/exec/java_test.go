//go:build systems

package exec

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/driver/drivertest"
	"github.com/weirmq/weir/driver/tested"
	"github.com/weirmq/weir/drivers/internal/served"
	"github.com/weirmq/weir/drivers/kafka"
	"github.com/weirmq/weir/drivers/redisstreams"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

// systems lists the systems that the tests start.
func systems() []driver.Definition {
	return []driver.Definition{redisstreams.Definition(), kafka.Definition()}
}

// built returns the class path of the Java child: its class, and the jars installed by the kafka
// recipe.
func built(t *testing.T) string {
	t.Helper()
	if _, err := osexec.LookPath("javac"); err != nil {
		needs.Host(t, "java", err)
	}
	cache := must.Get(broker.CacheDir(os.LookupEnv))(t)
	jars, err := filepath.Glob(filepath.Join(cache, "kafka", "*", "lib", "kafka-clients-4.*.jar"))
	if err != nil || len(jars) == 0 {
		t.Fatalf("no kafka-clients in %s: %v", cache, err)
	}
	lib, classes := filepath.Join(filepath.Dir(jars[len(jars)-1]), "*"), t.TempDir()
	if said, err := osexec.Command("javac", "-cp", lib, "-d", classes, example(t, "KafkaChild.java")).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, said)
	}
	return classes + string(os.PathListSeparator) + lib
}

// TestConformanceJava runs the suite with the Java child, which uses Kafka's own client.
func TestConformanceJava(t *testing.T) {
	s := served.Up(t, kafka.Definition(), 1)
	def := Definition()
	can := &def.Capabilities
	can.Ordering, can.MaxPayload = driver.PerPartition, 8<<20
	can.Settle = []driver.Settle{driver.SettleEach, driver.SettleBatch, driver.SettleAuto}
	options := map[string][]string{
		"command": {"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", built(t), "KafkaChild", s.Address[0], "linger.ms=0"},
		"order":   {"partition"}, "retains": {"yes"}, "start-limit": {"1m"},
	}
	t.Setenv(tested.VariableRecipe, "") // belongs to another driver
	t.Run("Java, Kafka", func(t *testing.T) {
		drivertest.Run(t, def, drivertest.Harness{
			Quiet: 100 * time.Millisecond, Options: options, Cut: s.Restart, Stall: s.Stall, Yields: drivertest.Prefetch, Expect: 30,
		})
	})
}
