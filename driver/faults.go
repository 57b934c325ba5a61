package driver

import (
	"errors"
	"fmt"
)

// Faults are what is wrong with a Config. Use them in Config.Validate.
type Faults []error

// Add notes what is wrong with an option, by a format: what it is, and what is allowed.
func (f *Faults) Add(option, format string, v ...any) {
	*f = append(*f, &OptionError{Name: option, Err: fmt.Errorf(format, v...)})
}

// Join returns all faults as one error; nil: there is none.
func (f Faults) Join() error { return errors.Join(f...) }
