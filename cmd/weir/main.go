// Command weir measures message queues, commit logs and socket libraries.
package main

import (
	"os"

	"github.com/weirmq/weir"
)

func main() { os.Exit(weir.Main()) }
