//go:build !systems

package exec

import (
	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/redisstreams"
)

// systems lists the systems that the tests start.
func systems() []driver.Definition { return []driver.Definition{redisstreams.Definition()} }
