//go:build !linux

package iris

import (
	"fmt"

	"github.com/weirmq/weir/driver"
)

// within returns an error: only Linux has network namespaces.
func within(string, func() error) error {
	return fmt.Errorf("the option namespace works on Linux only: %w", driver.ErrUnsupported)
}
