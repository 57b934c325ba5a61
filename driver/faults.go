package driver

import (
	"errors"
	"fmt"
)

// Faults collects the errors in a Config. Use it in Config.Validate.
type Faults []error

// Add adds an error in an option, by a format: what is wrong, and what is allowed.
func (f *Faults) Add(option, format string, v ...any) {
	*f = append(*f, &OptionError{Name: option, Err: fmt.Errorf(format, v...)})
}

// Join returns all errors as one; nil if there are none.
func (f Faults) Join() error { return errors.Join(f...) }
