//go:build unix

package broker

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"

	"github.com/weirmq/weir/driver"
)

// ServeMain is the process that StartEmbedded starts: `weir internal serve DRIVER --dir D --nodes N
// --port P --bind IP --set NAME=VALUE...`. args are the arguments after serve. It prints one line on
// stdout when the system answers, writes its log to stderr as JSON (which StartEmbedded reads), and
// runs until ctx ends or SIGTERM arrives; then it returns nil. A system that does not start returns
// ErrStart.
func ServeMain(ctx context.Context, args []string, drivers *driver.Registry, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New("serve: no driver")
	}
	def, err := drivers.Lookup(args[0])
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if def.Serve == nil {
		return fmt.Errorf("serve: %s cannot be embedded: %w", def.Name, driver.ErrUnsupported)
	}
	s := driver.Service{Options: map[string]string{}}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.Dir, "dir", "", "folder")
	flags.IntVar(&s.Nodes, "nodes", 1, "servers")
	flags.IntVar(&s.Port, "port", 0, "port of the first")
	flags.Func("bind", "address to listen at", func(text string) error {
		s.Bind = text
		return CheckBind(text)
	})
	flags.Func("set", "option of the server, NAME=VALUE", func(text string) error {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return fmt.Errorf("%q has no =", text)
		}
		s.Options[name] = value
		return nil
	})
	if err := flags.Parse(args[1:]); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if s.Dir == "" || flags.NArg() > 0 {
		return fmt.Errorf("serve: --dir is needed, and nothing beside flags (%q)", flags.Args())
	}
	// The guard sends SIGTERM. SIGINT from a terminal does not reach this process group.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	s.Log = slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.Ready = func(address []string) { _, _ = fmt.Fprintln(stdout, readyWord+strings.Join(address, ",")) }
	if err := def.Serve(ctx, s); err != nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	return nil
}
