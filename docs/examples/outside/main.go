// Command outside is weir with a driver that lives in a repository of its own.
package main

import (
	"os"

	"github.com/weirmq/weir"

	"example.com/outside/mailbox"
)

func main() { os.Exit(weir.Main(mailbox.Definition())) }
