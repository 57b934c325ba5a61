package engine

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// Of 100,000 draws a hundredth is nacked, within five standard deviations, and another seed nacks
// others.
func TestConsumersNackConfiguredShare(t *testing.T) {
	const n, share = 100_000, 0.01
	var a, b, none refusing
	a.begin(share, 1, 0, 0)
	b.begin(share, 2, 0, 0)
	refused, both := 0, 0
	for range n {
		x, y := a.draw(), b.draw()
		if x {
			refused++
		}
		if x && y {
			both++
		}
	}
	if off := math.Abs(float64(refused) - n*share); off > 5*math.Sqrt(n*share*(1-share)) {
		t.Errorf("%d of %d refused; want about %v", refused, n, n*share)
	}
	if both > refused/5 {
		t.Errorf("both seeds refuse %d of %d alike", both, refused)
	}
	if none.begin(0, 1, 0, 0); none.share != 0 {
		t.Error("a share of 0 refuses something")
	}
}

// The message accounting has every message once, and the nacks separately.
func TestNackedMessagesAreRedelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(&fake{}, 1000)
		cfg.Refuse = 0.1
		raw := do(t, cfg)
		if n := raw.All.Refused; n < 80 || n > 180 {
			t.Errorf("%d of 1100 messages and what came again were refused; want about 122", n)
		}
		expect(t, "delivered", raw.All.Delivered, 1100)
		expect(t, "duplicated", raw.All.Duplicated, 0)
		expect(t, "lost and pending", raw.All.Lost+raw.All.Pending, 0)
		expect(t, "refused in the window", raw.Measured.Refused <= raw.All.Refused && raw.Measured.Refused > 0, true)
	})
}

// Half of the deliveries are nacked, and the second nack makes a message a dead letter, so a
// quarter of the messages, within five standard deviations. The message accounting has all of them
// once.
func TestRepeatedNacksProduceDeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		cfg := config(f, 1000)
		cfg.Refuse, cfg.DeadLetter = 0.5, 2
		raw := do(t, cfg)
		dead := raw.All.DeadLettered
		if dead < 200 || dead > 350 {
			t.Errorf("%d of 1100 messages are dead letters; want about 275", dead)
		}
		expect(t, "delivered or a dead letter", raw.All.Delivered+dead, 1100)
		expect(t, "refused twice, or once", raw.All.Refused > 2*dead, true)
		expect(t, "lost and pending", raw.All.Lost+raw.All.Pending, 0)
		expect(t, "duplicated, misrouted and foreign", raw.All.Duplicated+raw.All.Misrouted+raw.All.Foreign, 0)
		expect(t, "dead letters in the window", raw.Measured.DeadLettered <= dead && raw.Measured.DeadLettered > 0, true)
		expect(t, "destinations made", len(f.made), 2)
		expect(t, "destinations removed", len(f.removed), 2)
	})
}

// The system drops what it should keep.
func TestMissingDeadLetterIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{buries: true}
		cfg := config(f, 1000)
		cfg.Refuse, cfg.DeadLetter = 0.5, 2
		raw := do(t, cfg)
		expect(t, "dead letters", raw.All.DeadLettered, 0)
		if raw.All.Lost < 200 || raw.All.Lost > 350 {
			t.Errorf("%d of 1100 messages are lost; want about 275", raw.All.Lost)
		}
	})
}

func TestNackDoesNotAllocate(t *testing.T) {
	x := newReceiving(t, 1)
	x.k.refusing.begin(0.5, 1, 0, 0)
	x.stamped(allAtOnce)
	if n := testing.AllocsPerRun(100, func() { _ = x.k.refuses(x.deliveries) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A second has room for nine changes of 100 ms, and they lose no message.
func TestConsumerChurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(&fake{}, 1000)
		cfg.Consumers, cfg.Churn = 2, 100*time.Millisecond
		raw := do(t, cfg)
		if raw.Churned == nil || raw.Churned.Changes < 9 || raw.Churned.Changes > 10 {
			t.Fatalf("%+v; want nine changes", raw.Churned)
		}
		expect(t, "delivered", raw.All.Delivered, 1100)
		expect(t, "duplicated", raw.All.Duplicated, 0)
		expect(t, "lost and pending", raw.All.Lost+raw.All.Pending, 0)
	})
}
