package blocking

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/driver"
)

func TestOutgoingCompletesEachMessageOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ms, refused := &fates{}, some(4), errors.New("refused")
		o := NewOutgoing(f)
		if o.Admit(ms[0], refused) || !o.Admit(ms[1], nil) || !o.Admit(ms[2], nil) {
			t.Error("admits what is refused, or not what is not")
		}
		o.Complete(ms[1], nil)
		began, stopped := time.Now(), errors.New("stopped")
		err := o.End(context.Background(), func(late bool) error {
			if waited := time.Since(began); !late || waited != 2*time.Second || !o.Ending() {
				t.Errorf("late %v after %v", late, waited)
			}
			o.Complete(ms[2], refused)
			return stopped
		})
		if !errors.Is(err, stopped) || o.Admit(ms[3], nil) || o.Flush(context.Background()) != nil {
			t.Errorf("after End, which returned %v, something is open", err)
		}
		if err := o.End(context.Background(), nil); err != nil {
			t.Errorf("a second End: %v", err)
		}
		for i, want := range []error{refused, nil, driver.ErrClosed, driver.ErrClosed} {
			if got := f.of(t, ms[i]); !errors.Is(got, want) {
				t.Errorf("message %d completed with %v; want %v", i, got, want)
			}
		}
	})
}

func TestOutgoingAllocatesNothing(t *testing.T) {
	o := NewOutgoing(discard{})
	m := &driver.Message{}
	if n := testing.AllocsPerRun(100, func() {
		o.Admit(m, nil)
		o.Complete(m, nil)
	}); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

type discard struct{}

func (discard) Complete(*driver.Message, error) {}
