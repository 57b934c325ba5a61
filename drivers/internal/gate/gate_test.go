package gate

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGateKillsOnlyStuckCall(t *testing.T) {
	killed := make(chan struct{}, 1)
	g := New(func() { killed <- struct{}{} })
	defer g.Close()
	ctx, cancel := context.WithCancel(t.Context())
	g.Enter(ctx)
	g.Leave()
	cancel() // no call is in progress
	ctx, cancel = context.WithCancel(t.Context())
	g.Enter(ctx)
	select {
	case <-killed:
		t.Fatal("killed without a call that was stuck")
	case <-time.After(2 * stuckAfter):
	}
	cancel()
	<-killed
	g.Leave()
}

func TestGateAllocatesNothing(t *testing.T) {
	g := New(func() {})
	defer g.Close()
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		g.Enter(ctx)
		g.Leave()
	}); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}
