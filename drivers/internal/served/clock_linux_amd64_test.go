package served

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/weirmq/weir/drivers/jetstream"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/clockstep"
	"github.com/weirmq/weir/internal/must"
	"github.com/weirmq/weir/internal/needs"
)

func TestTheClockOfAServerSteps(t *testing.T) {
	self := must.Get(os.Executable())(t)
	if err := clockstep.Check(self); err != nil {
		needs.Host(t, "ptrace", err)
	}
	s := Up(t, jetstream.Definition(), 1)
	url := s.Options["monitor"][0] + "/varz"
	for _, by := range []time.Duration{-time.Hour, 36 * time.Hour, 0} {
		do := broker.OrderClock
		if by == 0 {
			do = broker.OrderCorrect
		}
		must.Get(s.running.Order(t.Context(), do, by, "server-1"))(t)
		answer, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		var said struct{ Now time.Time }
		err = json.NewDecoder(answer.Body).Decode(&said)
		_ = answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Until(said.Now); (got - by).Abs() > time.Minute {
			t.Errorf("stepped by %v, the server says %v, which is %v from here", by, said.Now, got)
		}
	}
}
