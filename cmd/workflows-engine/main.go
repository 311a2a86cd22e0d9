// Command workflows-engine validates and runs workflow definitions, and manages their runs. See
// "workflows-engine --help".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/workflows-engine/workflows-engine/internal/childprocess"
	"github.com/workflows-engine/workflows-engine/internal/cli"
)

func main() {
	childprocess.HideEnvironment()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal stops the work in order; after it, a second one ends the process as usual.
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
