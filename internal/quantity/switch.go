package quantity

import (
	"fmt"
	"strings"
)

// Switch parses an on/off value: 1, true, yes, on, and their opposites.
func Switch(s string) (on bool, err error) {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		return true, nil
	case "0", "false", "no", "off":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither on nor off (1, 0, true, false)", s)
}
