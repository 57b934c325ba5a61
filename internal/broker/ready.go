package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/weirmq/weir/driver"
)

// Waits of a readiness check.
const (
	askLimit  = 10 * time.Second       // for one attempt
	askPause  = 50 * time.Millisecond  // after the first failed attempt
	askPauses = 500 * time.Millisecond // upper limit
)

// A question is a readiness check of a system.
type question struct {
	def     driver.Definition
	address []string
	options map[string][]string
	nodes   int
	declare bool
	confirm bool // like declare, and messages must be confirmed
}

// config returns the driver's settings without options that the driver does not have: a recipe may
// serve several drivers.
func (q *question) config() (driver.Config, error) {
	cfg := q.def.New()
	if err := driver.SetOption(cfg, "address", q.address...); err != nil {
		return nil, err
	}
	known := driver.Options(cfg)
	for name, values := range q.options {
		if !slices.ContainsFunc(known, func(o driver.Option) bool { return o.Name == name }) {
			continue
		}
		if err := driver.SetOption(cfg, name, values...); err != nil {
			return nil, err
		}
	}
	return cfg, driver.Check(cfg)
}

// ask repeats the check until the system answers, ctx ends, or gone returns why it never will. The
// error includes the last answer.
func (q *question) ask(ctx context.Context, gone func() error) (driver.Facts, error) {
	if _, err := q.config(); err != nil { // waiting cannot fix it
		return driver.Facts{}, fmt.Errorf("the options that the recipe gives the driver: %w", err)
	}
	var last error
	pause := askPause
	for {
		f, err := q.once(ctx)
		if err == nil {
			return f, nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if err := gone(); err != nil {
			return f, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return f, &unready{ctx.Err(), last}
		}
		pause = min(2*pause, askPauses)
	}
}

// An unready system was not ready when its time was up or the wait was cancelled.
type unready struct {
	ended error // error of the context
	said  error // last error of the driver
}

// Error returns the driver's error.
func (e *unready) Error() string {
	says := "the driver says: " + e.said.Error()
	if errors.Is(e.ended, context.DeadlineExceeded) {
		return says
	}
	return e.ended.Error() + ": " + says
}

// Unwrap returns why the wait ended, and the driver's error.
func (e *unready) Unwrap() []error { return []error{e.ended, e.said} }

// once connects and reads the facts; if required it also creates a destination, has messages confirmed
// there, and deletes it.
func (q *question) once(ctx context.Context) (f driver.Facts, err error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	cfg, err := q.config()
	if err != nil {
		return f, err
	}
	id := fmt.Sprintf("weir-ready-%d", os.Getpid())
	c, err := driver.Open(ctx, q.def, cfg, driver.Run{ID: id, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	if f, err = c.Facts(ctx); err != nil {
		return f, err
	}
	if q.nodes > 1 && f.Nodes < q.nodes {
		return f, fmt.Errorf("%d of %d nodes are up", f.Nodes, q.nodes)
	}
	if !q.declare && !q.confirm {
		return f, nil
	}
	d := driver.Destination{Name: id, Partitions: 1, Replicas: 1}
	if q.def.Capabilities.Replicas {
		d.Replicas = q.nodes
	}
	if q.confirm && q.def.Capabilities.Partitions {
		d.Partitions = max(q.nodes, 1) // one for each node that accepts messages
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
		defer cancel()
		err = errors.Join(err, c.Delete(ctx, d))
	}()
	if err = c.Declare(ctx, d); err == nil && q.confirm {
		err = confirmed(ctx, c, d)
	}
	return f, err
}

// confirmed sends a message to each partition of a destination. All must be confirmed.
func confirmed(ctx context.Context, c driver.Conn, d driver.Destination) (err error) {
	payload := []byte("weir: is a message confirmed?")
	all := make(fates, d.Partitions)
	p, err := c.Producer(ctx, driver.ProducerSpec{Destinations: []string{d.Name}, InFlight: d.Partitions, Largest: len(payload)}, all)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close(context.WithoutCancel(ctx))) }()
	for range d.Partitions {
		p.Publish(ctx, &driver.Message{Destination: d.Name, Payload: payload})
	}
	for n := range d.Partitions {
		select {
		case failed := <-all:
			err = errors.Join(err, failed)
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%d of %d messages have no confirmation: %w", d.Partitions-n, d.Partitions, ctx.Err()), err)
		}
	}
	if err != nil {
		return fmt.Errorf("a message is not confirmed: %w", err)
	}
	return nil
}

// fates receives the outcome of messages; it has room for all.
type fates chan error

// Complete implements driver.Completer.
func (f fates) Complete(_ *driver.Message, err error) { f <- err }
