package kafkaconn

import (
	"fmt"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/names"
)

// nameMost is the maximum length of a topic name
// (https://github.com/apache/kafka/blob/trunk/clients/src/main/java/org/apache/kafka/common/internals/Topic.java).
const nameMost = 249

// legal contains the characters allowed in a topic name.
const legal = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// Token encodes s for use in a name. Different inputs give different tokens: each byte that is not
// a letter, a digit or a hyphen becomes _ and two hexadecimal digits.
func Token(s string) string { return names.Token(s) }

// Topic returns a destination's topic: a name of weir's own or, with existing destinations, the
// destination itself, which must be a valid topic name.
func Topic(run driver.Run, destination string) (string, error) {
	name := destination
	if !run.Existing {
		name = "weir." + Token(run.ID) + "." + Token(destination)
	}
	switch {
	case destination == "", name == ".", name == "..", strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(legal, r) }):
		return "", fmt.Errorf("%q is not a topic (letters, digits, '.', '_' and '-'): %w", name, driver.ErrUnsupported)
	case len(name) > nameMost:
		return "", fmt.Errorf("topic %s is longer than %d: %w", name, nameMost, driver.ErrUnsupported)
	}
	return name, nil
}

func Group(run driver.Run, subscription string) string {
	return "weir." + Token(run.ID) + "." + Token(strings.TrimPrefix(subscription, run.ID+"-"))
}
