package kafkaconn

import (
	"fmt"
	"strings"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/names"
)

// nameMost is how long the name of a topic may be.
// (https://github.com/apache/kafka/blob/trunk/clients/src/main/java/org/apache/kafka/common/internals/Topic.java)
const nameMost = 249

// legal are the characters of the name of a topic.
const legal = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// Token returns s as a part of a name. Different s give different tokens: what is
// not a letter, a digit or a hyphen becomes _ and two hexadecimal digits a byte.
func Token(s string) string { return names.Token(s) }

// Topic returns the topic of a destination: weir's own, or where the run's
// destinations exist already the name itself, which is refused where it is none.
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
