package natsconn

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/names"
)

// Token returns s as one token of a subject and as a name of a stream or a
// consumer. Different s give different tokens: what is not a letter, a digit or
// a hyphen becomes _ and two hexadecimal digits a byte.
func Token(s string) string { return names.Token(s) }

// Subject returns the subject of a destination of a run.
func Subject(run driver.Run, destination string) string {
	return "weir." + Token(run.ID) + "." + Token(destination)
}

// Target returns the subject at which messages of a destination are published:
// weir's own, or where the run's destinations exist already the name itself, which
// is refused where nothing can be published at it.
func Target(run driver.Run, destination string) (string, error) {
	if !run.Existing {
		return Subject(run, destination), nil
	}
	if wild, err := CheckSubject(destination); err != nil {
		return "", err
	} else if wild {
		return "", fmt.Errorf("destination %s: nothing is published at a wildcard: %w", destination, driver.ErrUnsupported)
	}
	return destination, nil
}

// Source returns the subject at which messages of a destination are received: as
// Target, but wildcards are taken.
func Source(run driver.Run, destination string) (string, error) {
	if !run.Existing {
		return Subject(run, destination), nil
	}
	_, err := CheckSubject(destination)
	return destination, err
}

// Matches reports whether a subscription to pattern, which may have wildcards,
// takes messages of a subject. It allocates nothing.
func Matches(pattern, subject string) bool {
	if pattern == subject {
		return true
	}
	for {
		p, restP, moreP := strings.Cut(pattern, ".")
		s, restS, moreS := strings.Cut(subject, ".")
		switch {
		case p == ">":
			return true
		case p != "*" && p != s, moreP != moreS:
			return false
		case !moreP:
			return true
		}
		pattern, subject = restP, restS
	}
}

// CheckSubject reports whether a subject given by a user has wildcards, and
// refuses what is not a subject: the client is told not to look, and a blank would
// break its protocol.
// (https://docs.nats.io/nats-concepts/subjects)
func CheckSubject(s string) (wild bool, err error) {
	tokens := strings.Split(s, ".")
	for i, t := range tokens {
		switch {
		case t == "" || strings.ContainsFunc(t, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
			return false, fmt.Errorf("%q is not a subject (tokens joined by dots, without blanks): %w", s, driver.ErrUnsupported)
		case t == ">" && i < len(tokens)-1:
			return false, fmt.Errorf("%q is not a subject (> must come last): %w", s, driver.ErrUnsupported)
		case t == "*", t == ">":
			wild = true
		}
	}
	return wild, nil
}

// CheckDestination refuses what no NATS has: partitions; names that are empty.
func CheckDestination(d driver.Destination) error {
	switch {
	case d.Name == "":
		return fmt.Errorf("destination without a name: %w", driver.ErrUnsupported)
	case d.Partitions > 1:
		return fmt.Errorf("destination %s: %d partitions: NATS has none: %w", d.Name, d.Partitions, driver.ErrUnsupported)
	}
	return nil
}
