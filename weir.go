// Package weir is the whole weir program as a function, for programs that add drivers
// of their own. Such a program is its main and nothing more:
//
//	func main() { os.Exit(weir.Main(mymq.Definition())) }
//
// It has every verb, the drivers of drivers/standard, and the drivers that it adds. With
// all.Extra of drivers/all it has every driver of weir, as cmd/weir-all does. Call the
// binary weir: messages, help and completion use that name. docs/examples/outside is a module
// with such a program and its driver. Package driver says what a driver does, and
// package driver/drivertest tests it.
package weir

import (
	"context"
	"os"
	"slices"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/standard"
	"github.com/weirmq/weir/internal/cli"
	"github.com/weirmq/weir/internal/guard"
)

// Main runs weir with its standard drivers and with added, and returns the exit code for
// [os.Exit]. Two drivers of one name, or one without a name or a New, make every verb
// fail with a message. Call Main once, first in main, before flags are read, goroutines
// start or signals are caught. It takes the arguments, the streams and the signals of
// this process. It starts the same binary again, with hidden arguments, for servers,
// installs and parts of a run.
func Main(added ...driver.Definition) int {
	if code, handled := guard.Main(os.Args); handled {
		return code
	}
	return cli.Main(context.Background(), cli.Process(slices.Concat(standard.Definitions(), added), standard.Absent(), standard.Tested))
}
