package cli

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/internal/fleet/admission"
	"github.com/weirmq/weir/internal/fleet/agent"
	"github.com/weirmq/weir/internal/pace"
)

// natsServer runs a NATS server, with a server's own flags, until a signal. Tests use it where weir's own,
// which listens on loopback only, does not suffice.
func natsServer() {
	fs := flag.NewFlagSet("natsserver", flag.ExitOnError)
	o, err := server.ConfigureOptions(fs, os.Args[1:], fs.Usage, fs.Usage, fs.Usage)
	if err == nil {
		var s *server.Server
		if s, err = server.NewServer(o); err == nil {
			s.ConfigureLogger()
			s.Start() // it handles signals, and exits on one
			s.WaitForShutdown()
		}
	}
	fail(err)
}

// otherWeir is an agent of a different version with the given name.
func otherWeir() {
	address, err := admission.Parse(os.Getenv("WEIR_JOIN"))
	if err == nil {
		a := &agent.Agent{
			Address: address, Name: os.Args[1], Version: "v0.0.1-other", Clock: pace.NewClock, Env: os.LookupEnv,
			Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Note: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
		}
		err = a.Run(context.Background())
	}
	fail(err)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
