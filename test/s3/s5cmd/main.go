// s5cmd, built by a module of its own: so its version and those of its libraries are pinned here.
package main

import (
	"context"
	"os"

	"github.com/peak/s5cmd/v2/command"
)

func main() {
	if command.Main(context.Background(), os.Args) != nil {
		os.Exit(1)
	}
}
