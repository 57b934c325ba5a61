package clientpath

import (
	"context"
	"errors"
	"testing"

	"github.com/weirmq/weir/driver"
)

type config struct{ Option }

func (*config) Validate() error { return nil }

func (*config) Open(context.Context, driver.Run) (driver.Conn, error) { return nil, errors.New("none") }

// TestTheOptionDecidesWhatTheLabelSays sets the option as a scenario does: what
// it says must follow, and no third word is taken.
func TestTheOptionDecidesWhatTheLabelSays(t *testing.T) {
	c := &config{Default()}
	if got := c.Label("own", "Call"); got != "own" || c.ByVendor() {
		t.Errorf("by default %q publishes", got)
	}
	if err := driver.SetOption(c, "client-path", Vendor); err != nil {
		t.Fatal(err)
	}
	if got := c.Label("own", "Call"); got != "the client's own publisher (Call)" || !c.ByVendor() {
		t.Errorf("with %s %q publishes", Vendor, got)
	}
	if err := driver.SetOption(c, "client-path", "other"); err == nil {
		t.Error("takes another word")
	}
}
