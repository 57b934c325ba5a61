package nats

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirmq/weir/drivers/internal/natstest"
	"github.com/weirmq/weir/internal/natsd"
)

// TestThePageSaysWhatTheServerSays sets what each row of the page's table of
// guarantees says, and asks a running server.
func TestThePageSaysWhatTheServerSays(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, natsd.Options{})
	for _, c := range Definition().Confirmations {
		t.Run(c.When, func(t *testing.T) {
			options := map[string]string{}
			for setting := range strings.SplitSeq(c.When, ", ") {
				name, value, _ := strings.Cut(setting, ": ")
				options[name] = value
			}
			f, err := open(t, s, options).Facts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.Confirms, f.Confirms); diff != "" {
				t.Errorf("confirms (-page +server):\n%s", diff)
			}
		})
	}
}
