// Command weir measures message queues, commit logs and socket libraries.
package main

import (
	"context"
	"os"

	"github.com/weirmq/weir/drivers/all"
	"github.com/weirmq/weir/internal/cli"
	"github.com/weirmq/weir/internal/guard"
)

func main() {
	if code, handled := guard.Main(os.Args); handled {
		os.Exit(code)
	}
	os.Exit(cli.Main(context.Background(), cli.Process(all.Definitions(), all.Tested())))
}
