package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/natsconn"
)

// A target is the location of a destination.
type target struct {
	stream  string
	subject string // to publish to; "" with whyNot
	filter  string // what is consumed from the stream; "" for all
	whyNot  string // why nothing can be published
	// Several servers may confirm one message: there are replicas, or may be later.
	replicated bool
	largest    int32 // size limit of the stream in bytes; 0 or less: none

	subjects []string // of the whole stream; nil for one of weir's streams
}

// publishable returns an error if such messages cannot be published there.
func (t target) publishable(largest int) error {
	if t.whyNot != "" {
		return fmt.Errorf("%s: %w", t.whyNot, driver.ErrUnsupported)
	}
	return driver.CheckSize(largest, int64(t.largest), "max_msg_size of stream "+t.stream)
}

// target locates a destination. An existing destination is looked up once: as a stream name, then
// as a subject of a stream.
func (c *conn) target(ctx context.Context, destination string) (target, error) {
	if !c.run.Existing {
		return target{stream: c.stream(destination), subject: natsconn.Subject(c.run, destination), replicated: c.clustered()}, nil
	}
	if known, ok := c.known.Load(destination); ok {
		return known.(target), nil
	}
	var t target
	wild, err := natsconn.CheckSubject(destination)
	if err != nil {
		return t, err // nor can stream names contain blanks
	}
	info, err := c.streamInfo(ctx, destination)
	switch {
	case err == nil:
		t = streamTarget(info)
	case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrInvalidStreamName):
		name, err := c.streamOf(ctx, destination)
		if err != nil {
			return t, err
		}
		if info, err = c.streamInfo(ctx, name); err != nil {
			return t, fmt.Errorf("stream %s: %w", name, words.Cause(err))
		}
		t = streamTarget(info)
		t.subject, t.filter = destination, destination
		if info.Config.NoAck {
			break
		}
		t.whyNot = ""
		if wild {
			t.subject, t.whyNot = "", "nothing is published at a wildcard"
		}
	default:
		return t, words.Cause(err)
	}
	t.replicated = c.clustered() || info.Config.Replicas > 1 // even a server outside a cluster may lead to one
	c.known.Store(destination, t)
	c.declared.Store(t.stream, true)
	return t, nil
}

func streamTarget(info *jetstream.StreamInfo) target {
	subjects := info.Config.Subjects
	t := target{stream: info.Config.Name, largest: info.Config.MaxMsgSize, subjects: subjects}
	switch {
	case info.Config.NoAck:
		t.whyNot = "stream " + t.stream + " acknowledges nothing (no_ack)"
	case len(subjects) != 1:
		t.whyNot = fmt.Sprintf("stream %s has %d subjects, and it is not said which to publish to (name one)", t.stream, len(subjects))
	case strings.ContainsAny(subjects[0], "*>"):
		t.whyNot = fmt.Sprintf("stream %s takes the subjects %s, and it is not said which to publish to (name one)", t.stream, subjects[0])
	default:
		t.subject = subjects[0]
	}
	return t
}

// clustered reports whether the connected server is in a cluster. A stream with one replica may
// move there, or get more replicas.
func (c *conn) clustered() bool { return c.link.ConnectedClusterName() != "" }

func (c *conn) streamInfo(ctx context.Context, name string) (*jetstream.StreamInfo, error) {
	s, err := ask(ctx, func(ctx context.Context) (jetstream.Stream, error) { return c.js.Stream(ctx, name) })
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// streamOf returns the name of the only stream that has a subject. A wildcard may match several
// streams.
func (c *conn) streamOf(ctx context.Context, subject string) (string, error) {
	names, err := ask(ctx, func(ctx context.Context) (names []string, err error) {
		l := c.js.StreamNames(ctx, jetstream.WithStreamListSubject(subject))
		for n := range l.Name() {
			names = append(names, n)
		}
		return names, l.Err()
	})
	switch {
	case err != nil:
		return "", words.Cause(err)
	case len(names) == 0:
		return "", fmt.Errorf("there is no stream of this name, and none that takes it as a subject: %w", driver.ErrUnsupported)
	case len(names) > 1:
		return "", fmt.Errorf("several streams take this subject: %s (name one): %w", strings.Join(names, ", "), driver.ErrUnsupported)
	}
	return names[0], nil
}
