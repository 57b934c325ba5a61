// Package natsdtest starts plain NATS servers with arbitrary settings inside a test's own process,
// like a user's own server. Only tests import it.
package natsdtest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/weirmq/weir/internal/must"
)

// Start starts a server on a free loopback port, with settings that change may modify, and stops it at
// the end of the test. The test fails if the server does not answer within a minute.
func Start(t testing.TB, change func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true}
	change(o)
	s := must.Get(server.NewServer(o))(t)
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
