package local

import (
	"fmt"

	"github.com/weirmq/weir/driver"
)

// Bounds and defaults of the options that the drivers share. The memory is that
// of one subscription of one destination.
const (
	DefaultCapacity = 1024
	DefaultCell     = 64 << 10 // bytes
	LargestCapacity = 1 << 20
	LargestMemory   = 1 << 30 // bytes
)

// Memory reports what is out of bounds in the bytes of a cell, and, where that
// and the capacity (which ok says) are within theirs, in both together.
func Memory(capacity int, ok bool, cell int64) error {
	switch {
	case cell < 1 || cell > LargestMemory:
		return &driver.OptionError{Name: "cell", Err: fmt.Errorf("is %s (1B to %s)", driver.FormatSize(cell), driver.FormatSize(LargestMemory))}
	case ok && int64(capacity)*cell > LargestMemory:
		return &driver.OptionError{Name: "capacity", Err: fmt.Errorf("times cell is %s (up to %s)", driver.FormatSize(int64(capacity)*cell), driver.FormatSize(LargestMemory))}
	}
	return nil
}
