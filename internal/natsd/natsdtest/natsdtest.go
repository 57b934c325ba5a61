// Package natsdtest starts plain NATS servers inside a test's own process: such as
// a user may have, with whatever settings. Only tests import it.
package natsdtest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Start starts a server on a free port of loopback, with settings that change may
// alter, and ends it with the test. It fails the test where the server does not
// answer within a minute.
func Start(t testing.TB, change func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true}
	change(o)
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not listen")
	}
	return s
}
