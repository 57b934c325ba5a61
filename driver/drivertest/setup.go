package drivertest

import (
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/weirmq/weir/driver"
)

// setupChecks test opening, settings and destinations.
func setupChecks() []check {
	return []check{
		{
			name: "OpenClose",
			rule: "Open connects, its ctx bounds the connecting only, and Close ends the connection",
			run: func(e *env) {
				cfg := e.config(nil)
				var conn driver.Conn
				e.must("open", func(ctx context.Context) (err error) {
					conn, err = driver.Open(ctx, e.s.def, cfg, newRun())
					return err
				}) // its context has ended by now
				e.must("facts, after the context given to Open has ended", func(ctx context.Context) error {
					_, err := conn.Facts(ctx)
					return err
				})
				e.must("close", conn.Close)
			},
		},
		{
			name: "OpenUnreachable",
			rule: "An unreachable system is ErrUnreachable",
			lacks: func(d driver.Definition) string {
				return lackIf(!driver.HasOption(d.New(), "address"), "an option address")
			},
			run: openUnreachable,
		},
		{name: "ConfigStrict", rule: "A Config is a driver's own typed settings, holding the defaults", run: configStrict},
		{
			name: "DeclareTwice",
			rule: "Declare makes the destinations, and is idempotent",
			run: func(e *env) {
				s := e.open()
				s.declare("d", "f")
				s.declare("d", "f")
				x := s.sender("d", "f")
				x.send(messages("d", "declared", 1, 32)...)
				s.declare("f")
				x.send(messages("f", "declared", 1, 32)...)
			},
		},
		{
			name: "DeleteTwice",
			rule: "Delete removes the destinations and is idempotent: what does not exist is not an error",
			run: func(e *env) {
				s := e.open()
				d := plain("d")
				remove := func(ctx context.Context) error { return s.conn.Delete(ctx, d) }
				e.must("delete what never was", remove)
				s.declare("d")
				e.must("delete", remove)
				e.must("delete again", remove)
				s.declare("d")
				s.sender("d").send(messages("d", "again", 1, 32)...)
			},
		},
		{
			name: "GuaranteeDeclared",
			rule: "Facts reads from the running system what it is and what a confirmation of the declared destinations means",
			run: func(e *env) {
				s := e.open()
				s.declare("d")
				var f driver.Facts
				e.must("facts", func(ctx context.Context) (err error) {
					f, err = s.conn.Facts(ctx)
					return err
				})
				g := f.Confirms.Guarantee
				switch {
				case g == 0:
					e.errorf("no guarantee")
				case !slices.Contains(e.caps.Guarantees, g):
					e.errorf("the guarantee is %v, which is not declared: %v", g, e.caps.Guarantees)
				}
				if f.Name == "" {
					e.errorf("no name of the system")
				}
				if f.Version == "" {
					e.errorf("no version of the system")
				}
				if e.caps.Leaders != (len(f.Leaders) > 0) {
					e.errorf("Leaders is %v, and the facts of a destination name %q", e.caps.Leaders, f.Leaders)
				}
				for _, at := range f.Leaders {
					if _, _, err := net.SplitHostPort(at); err != nil {
						e.errorf("the leader %q is not a host and a port: %v", at, err)
					}
					if e.s.h.At != nil && !slices.Contains(e.s.h.At, at) {
						e.errorf("the leader %q is not one of the servers' ports: %q", at, e.s.h.At)
					}
				}
			},
		},
	}
}

func lackIf(missing bool, what string) string {
	if missing {
		return what
	}
	return ""
}

func openUnreachable(e *env) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		e.fatalf("find a port without a listener: %v", err)
	}
	nobody := l.Addr().String()
	if err := l.Close(); err != nil {
		e.fatalf("find a port without a listener: %v", err)
	}
	cfg := e.config(map[string][]string{"address": {nobody}})
	var conn driver.Conn
	returned := within(openPatience, func() {
		ctx, cancel := context.WithTimeout(e.ctx, patience)
		defer cancel()
		conn, err = driver.Open(ctx, e.s.def, cfg, newRun())
	})
	switch {
	case !returned:
		e.fatalf("Open of %s, without a listener, has not returned after %v", nobody, openPatience)
	case err == nil:
		e.later(conn.Close)
		e.errorf("Open of %s, without a listener, returned no error", nobody)
	case !errors.Is(err, driver.ErrUnreachable):
		e.errorf("Open of %s, without a listener, returned an error that is not ErrUnreachable: %v", nobody, err)
	}
}

func configStrict(e *env) {
	cfg := e.s.def.New()
	if v := reflect.ValueOf(cfg); v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		e.fatalf("New returns a %T, not a pointer to a struct", cfg)
	}
	if err := driver.Check(cfg); err != nil {
		e.errorf("the defaults are not valid: %v", err)
	}
	if err := driver.Check(e.config(nil)); err != nil {
		e.errorf("the options of the harness are not valid: %v", err)
	}
	err := driver.SetOption(cfg, "no-such-option", "1")
	var oe *driver.OptionError
	if !errors.As(err, &oe) {
		e.errorf("an unknown option was not refused: %v", err)
	}
	before := driver.Options(e.s.def.New())
	var names []string
	for _, o := range before {
		if slices.Contains(names, o.Name) {
			e.errorf("two options are called %s", o.Name)
		}
		names = append(names, o.Name)
		if o.Help == "" {
			e.errorf("option %s has no help", o.Name)
		}
		if o.Name != strings.ToLower(o.Name) || strings.ContainsAny(o.Name, " _") {
			e.errorf("option %s is not in lower case with hyphens and dots", o.Name)
		}
		for _, v := range [][]string{{"true"}, {"false"}, {"7"}, {"7s"}, {"changed"}} {
			if len(o.Allowed) == 0 && driver.SetOption(cfg, o.Name, v...) == nil {
				break
			}
		}
	}
	if after := driver.Options(e.s.def.New()); !reflect.DeepEqual(before, after) {
		e.errorf("setting options of one Config changed the defaults of the next: New does not return a Config of its own")
	}
}
