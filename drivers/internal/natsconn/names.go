package natsconn

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/names"
)

// Token encodes s as one token of a subject, also usable as the name of a stream or a consumer.
// Different inputs give different tokens.
func Token(s string) string { return names.Token(s) }

func Subject(run driver.Run, destination string) string {
	return "weir." + Token(run.ID) + "." + Token(destination)
}

// Subscription returns the name of a run's subscription on the server. For existing destinations,
// the name shows that it is weir's.
func Subscription(run driver.Run, subscription string) string {
	if run.Existing {
		return "weir-" + Token(run.ID) + "-" + Token(strings.TrimPrefix(subscription, run.ID+"-"))
	}
	return Token(subscription)
}

// Sequence returns the sequence number of the first message of a position driver.AtOffset.
func Sequence(p driver.Position) (uint64, error) {
	n, err := strconv.ParseUint(p.Offset, 10, 64)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("offset %q is not a sequence number (1 or more): %w", p.Offset, driver.ErrUnsupported)
	}
	return n, nil
}

// Target returns the subject for publishing to a destination: a subject of weir's own or, with
// existing destinations, the destination itself, which must be a subject to publish to.
func Target(run driver.Run, destination string) (string, error) {
	subject, wild, err := source(run, destination)
	if wild {
		return "", fmt.Errorf("nothing is published at a wildcard: %w", driver.ErrUnsupported)
	}
	return subject, err
}

// Source returns the subject for receiving from a destination: as Target, but wildcards are
// allowed.
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

// Matches reports whether a subscription to pattern, which may contain wildcards, matches subject.
// It does not allocate.
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

// CheckSubject reports whether a user's subject has wildcards, and returns an error if it is not a
// valid subject: the client's own check is off, and a blank would break its protocol
// (https://docs.nats.io/nats-concepts/subjects).
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
