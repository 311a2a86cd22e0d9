// Command workflows-engine-mcp serves the engine to one MCP host over standard input and output. See
// "workflows-engine-mcp --help" and docs/mcp-hosts.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/workflows-engine/workflows-engine/internal/childprocess"
)

func main() {
	childprocess.HideEnvironment()
	// A disconnected host must not end the process in the middle of its work: writes fail instead.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// The first signal stops the server in order; after it, a second one ends the process as usual.
	context.AfterFunc(ctx, stop)
	// Standard output belongs to the protocol. Other output, of a library or a forgotten line, goes to
	// standard error.
	protocol := os.Stdout
	os.Stdout = os.Stderr
	os.Exit(run(ctx, os.Args[1:], os.Stdin, protocol, os.Stderr))
}
