package main

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestReferencePage: docs/reference/mcp-server.md is the help of the server.
func TestReferencePage(t *testing.T) {
	t.Parallel()
	var help bytes.Buffer
	if _, err := parse([]string{"--help"}, &help); err != errAnswered {
		t.Fatal(err)
	}
	enginetest.RequireReference(t, "mcp-server.md", fmt.Sprintf("# Flags of workflows-engine-mcp\n\nFor users who configure an MCP host: the output of `workflows-engine-mcp --help`. "+
		"`make docs` writes this page.\n[mcp-hosts.md](../mcp-hosts.md) shows how a host gets these flags.\n\n```text\n%s```\n", &help), *update)
}
