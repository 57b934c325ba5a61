package series

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/result"
)

var (
	both  = driver.Confirms{Guarantee: driver.Replicated, Copies: driver.CopiesAll}
	alone = driver.Confirms{Guarantee: driver.Received, Stable: driver.StableFsync}
)

// A pair loses its replica, does not answer for a while, and has it again.
func TestGuaranteeChangesAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10500*time.Millisecond)
		defer cancel()
		var seen []reportedConfirms
		all := follow(ctx, func(ctx context.Context) (driver.Facts, error) {
			switch at := time.Since(began); {
			case at < 2500*time.Millisecond:
				return driver.Facts{Confirms: both}, nil
			case at < 4*time.Second:
				<-ctx.Done() // it hangs
				return driver.Facts{}, errors.New("unreachable")
			case at < 8*time.Second:
				return driver.Facts{Confirms: alone}, nil
			}
			return driver.Facts{Confirms: both}, nil
		}, func() int64 { return int64(time.Since(began)) }, func(p reportedConfirms) { seen = append(seen, p) })
		want := []reportedConfirms{{0, both}, {int64(6 * time.Second), alone}, {int64(8 * time.Second), both}}
		if diff := cmp.Diff(want, all, cmp.AllowUnexported(reportedConfirms{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want[1:], seen, cmp.AllowUnexported(reportedConfirms{})); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}

func TestTimesOfWeakerGuarantee(t *testing.T) {
	weak := result.Weaker{Guarantee: "received", Copies: "1", Stable: "fsync"}
	span := func(from, to int64) result.Weaker {
		w := weak
		w.FromNS, w.ToNS = from, to
		return w
	}
	for name, tc := range map[string]struct {
		first driver.Confirms
		all   []reportedConfirms
		want  []result.Weaker
	}{
		"nothing was asked":      {first: both},
		"as it was":              {first: both, all: []reportedConfirms{{0, both}}},
		"for a while":            {first: both, all: []reportedConfirms{{0, both}, {4, alone}, {8, both}}, want: []result.Weaker{span(4, 8)}},
		"until the end":          {first: both, all: []reportedConfirms{{0, both}, {4, alone}}, want: []result.Weaker{span(4, 20)}},
		"after the end":          {first: both, all: []reportedConfirms{{0, both}, {24, alone}}, want: []result.Weaker{span(24, 24)}},
		"a stronger one is none": {first: driver.Confirms{Guarantee: driver.Received}, all: []reportedConfirms{{0, alone}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, weaker(tc.first, tc.all, 20)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
