// Command peers compares weir with the vendors' own load tools. On one server, started by
// weir's recipe, weir and the tool take turns with the same message size, guarantee and
// messages in flight. What it prints is the ratio of their rates:
//
//	go run ./bench/peers [-turns 6] [-out FILE] [nats|jetstream|kafka|rabbitmq|redis ...]
//
// The tools are installed as servers are, in weir's cache. Systems run one after another.
// With -out the figures go to a file, in which rows of earlier runs of other systems stay.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/weirmq/weir"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/layout"
)

func main() {
	// Guards, installers, supervisors and the runs of weir are this binary, too.
	if code, handled := guard.Main(os.Args); handled {
		os.Exit(code)
	}
	if len(os.Args) > 1 && slices.Contains([]string{"internal", "run"}, os.Args[1]) {
		os.Exit(weir.Main(tools()))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := compare(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		if errors.Is(err, errUsage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

var errUsage = errors.New("usage")

// compare measures what args name, and prints and stores the result.
func compare(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	turns := flags.Int("turns", 6, "pairs of turns; below 6 there is no interval")
	out := flags.String("out", "", "file for the figures, as JSON")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if *turns < 1 || *turns > 1000 {
		return fmt.Errorf("%w: -turns %d does not fit (1 to 1000)", errUsage, *turns)
	}
	var chosen []*system
	var names []string
	for i := range systems {
		names = append(names, systems[i].name)
		if flags.NArg() == 0 || slices.Contains(flags.Args(), systems[i].name) {
			chosen = append(chosen, &systems[i])
		}
	}
	for _, name := range flags.Args() {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%w: system %q is not known (%s)", errUsage, name, strings.Join(names, ", "))
		}
	}
	stored, err := read(*out)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cache, err := broker.CacheDir(os.LookupEnv)
	if err != nil {
		return err
	}
	b := &bench{self: self, cache: cache, note: func(line string) { fmt.Fprintln(os.Stderr, line) }}
	fresh := &figures{Schema: schema}
	var failed error
	for _, s := range chosen {
		rows, err := b.measure(ctx, s, *turns)
		for _, row := range rows {
			fresh.put(row)
			stored.put(row)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", s.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	page := &layout.Page{}
	fresh.page(page)
	fmt.Print(layout.Terminal(0, false).Page(page))
	if *out != "" && len(fresh.Rows) > 0 {
		b, err := json.MarshalIndent(stored, "", "  ")
		if err != nil {
			return err
		}
		failed = errors.Join(failed, os.WriteFile(*out, append(b, '\n'), 0o644))
	}
	return failed
}
