// Command peers compares weir with the vendors' own load tools. On one server, started from weir's
// recipe, weir and the tool take turns with the same message size, guarantee and messages in flight.
// It prints the ratio of their rates:
//
//	go run ./bench/peers [-turns 6] [-out FILE] [SYSTEM|FLOW ...]
//
// The tools are installed like servers, in weir's cache. Systems run one after another. With -out the
// figures are written to a file, in which rows of other flows are kept.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/weirmq/weir"
	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/guard"
	"github.com/weirmq/weir/internal/view/layout"
)

func main() {
	// Guards, installers, supervisors and runs of weir are this binary, too.
	if code, handled := guard.Main(os.Args); handled {
		os.Exit(code)
	}
	if len(os.Args) > 1 && slices.Contains([]string{"internal", "run"}, os.Args[1]) {
		os.Exit(weir.Main(append(all.Extra(), tools())...))
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

// compare measures what args name, and prints and stores the results.
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
	chosen, err := choose(flags.Args())
	if err != nil {
		return err
	}
	if _, err := read(*out); err != nil {
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
		failed = errors.Join(failed, fresh.store(*out))
	}
	return failed
}

// choose returns the named systems, with all or some of their flows; everything if there are no names.
func choose(names []string) (chosen []*system, err error) {
	var known []string
	for i := range systems {
		s := systems[i]
		known = append(known, s.name)
		var flows []flow
		for _, f := range s.flows {
			known = append(known, f.name)
			if len(names) == 0 || slices.Contains(names, s.name) || slices.Contains(names, f.name) {
				flows = append(flows, f)
			}
		}
		if s.flows = flows; len(flows) > 0 {
			chosen = append(chosen, &s)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%w: system or flow %q is not known (%s)", errUsage, name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}
