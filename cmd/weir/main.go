// Command weir measures message queues, commit logs and socket libraries.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/cli"
	"github.com/weirmq/weir/internal/guard"
)

func main() {
	if code, handled := guard.Main(os.Args); handled {
		os.Exit(code)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	self, _ := os.Executable() // without it only embedded systems cannot be started, which says so
	width, _, _ := term.GetSize(int(os.Stderr.Fd()))
	os.Exit(cli.Main(context.Background(), cli.World{
		Args: os.Args[1:], Env: os.LookupEnv, Stdout: os.Stdout, Stderr: os.Stderr, Drivers: all.Definitions(), Self: self, Signals: signals,
		StdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())), StderrTerminal: term.IsTerminal(int(os.Stderr.Fd())), Width: width,
	}))
}
