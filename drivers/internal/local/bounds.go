package local

import (
	"fmt"

	"github.com/weirmq/weir/driver"
)

// Bounds and defaults of the shared options. The memory is that of one subscription of one
// destination.
const (
	DefaultCapacity = 1024
	DefaultCell     = 64 << 10 // bytes
	LargestMemory   = 1 << 30  // bytes
)

// Memory returns an error if capacity cells of cell bytes exceed LargestMemory.
func Memory(capacity int, cell int64) error {
	if all := int64(capacity) * cell; all > LargestMemory {
		return &driver.OptionError{Name: "capacity", Err: fmt.Errorf("times cell is %s (up to %s)", driver.FormatSize(all), driver.FormatSize(LargestMemory))}
	}
	return nil
}
