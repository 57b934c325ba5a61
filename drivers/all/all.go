// Package all lists every driver of weir: those of drivers/standard, and those whose clients
// would make the first go run ./cmd/weir slow, a line each.
package all

import (
	"cmp"
	"slices"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/eventstore"
	"github.com/weirmq/weir/drivers/liftbridge"
	"github.com/weirmq/weir/drivers/mongodb"
	"github.com/weirmq/weir/drivers/pulsar"
	"github.com/weirmq/weir/drivers/rocketmq"
	"github.com/weirmq/weir/drivers/sqs"
	"github.com/weirmq/weir/drivers/standard"
)

// Definitions returns the drivers, sorted by name.
func Definitions() []driver.Definition {
	return slices.SortedFunc(slices.Values(slices.Concat(standard.Definitions(), Extra())), func(a, b driver.Definition) int {
		return cmp.Compare(a.Name, b.Name)
	})
}

// Extra returns the drivers that package standard lacks. A program adds them with
// weir.Main(all.Extra()...), as cmd/weir-all does.
func Extra() []driver.Definition {
	return []driver.Definition{
		eventstore.Definition(),
		liftbridge.Definition(),
		mongodb.Definition(),
		pulsar.Definition(),
		rocketmq.Definition(),
		sqs.Definition(),
	}
}
