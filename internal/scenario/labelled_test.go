package scenario

import (
	"testing"

	"github.com/weirmq/weir/driver"
)

// labelled blocks where its storage is file.
type labelled struct{ fake }

func (*labelled) ClientPath() string    { return "its own" }
func (l *labelled) PublishBlocks() bool { return l.Storage == "file" }

// TestSettingsDecideWhetherPublishBlocks: the engine goes by what the scenario says
// of the driver, not by what the driver declares for all settings.
func TestSettingsDecideWhetherPublishBlocks(t *testing.T) {
	t.Parallel()
	for storage, want := range map[string]bool{"file": true, "memory": false} {
		in := inputs(t, "", flags("system.options.storage="+storage, "system.driver=either")...)
		r, err := driver.NewRegistry(driver.Definition{
			Name: "either", New: func() driver.Config { return &labelled{} },
			Capabilities: driver.Capabilities{Consume: true, Guarantees: []driver.Guarantee{driver.Received}, Settle: []driver.Settle{driver.SettleEach}},
		})
		if err != nil {
			t.Fatal(err)
		}
		in.Drivers = r
		s, err := only(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Config("run", 1).Definition.Capabilities.PublishBlocks; got != want {
			t.Errorf("storage %s: blocks %v, want %v", storage, got, want)
		}
	}
}
