// Command weir-all is weir with every driver: cmd/weir, and the drivers whose clients take long
// to compile. Releases have it under the name weir.
package main

import (
	"os"

	"github.com/weirmq/weir"
	"github.com/weirmq/weir/drivers/all"
)

func main() { os.Exit(weir.Main(all.Extra()...)) }
