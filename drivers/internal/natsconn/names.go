package natsconn

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/names"
)

// Token returns s as one token of a subject and as a name of a stream or a consumer.
// Different s give different tokens.
func Token(s string) string { return names.Token(s) }

func Subject(run driver.Run, destination string) string {
	return "weir." + Token(run.ID) + "." + Token(destination)
}

// Subscription returns what a subscription of a run is called on what holds its
// messages. Where that exists already the name says that it is weir's.
func Subscription(run driver.Run, subscription string) string {
	if run.Existing {
		return "weir-" + Token(run.ID) + "-" + Token(strings.TrimPrefix(subscription, run.ID+"-"))
	}
	return Token(subscription)
}

// Sequence returns the number of the first message of a position driver.AtOffset.
func Sequence(p driver.Position) (uint64, error) {
	n, err := strconv.ParseUint(p.Offset, 10, 64)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("offset %q is not a sequence number (1 or more): %w", p.Offset, driver.ErrUnsupported)
	}
	return n, nil
}

// Target returns the subject at which messages of a destination are published:
// weir's own, or where the run's destinations exist already the name itself, which
// is refused where nothing can be published at it.
func Target(run driver.Run, destination string) (string, error) {
	subject, wild, err := source(run, destination)
	if wild {
		return "", fmt.Errorf("nothing is published at a wildcard: %w", driver.ErrUnsupported)
	}
	return subject, err
}

// Source returns the subject at which messages of a destination are received: as
// Target, but wildcards are taken.
func Source(run driver.Run, destination string) (string, error) {
	subject, _, err := source(run, destination)
	return subject, err
}

func source(run driver.Run, destination string) (subject string, wild bool, err error) {
	if !run.Existing {
		return Subject(run, destination), false, nil
	}
	if wild, err = CheckSubject(destination); err != nil {
		return "", false, err
	}
	return destination, wild, nil
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
