// Package mcpserver serves the engine over MCP, with the official SDK: the protocol's tools, resources and prompts.
//
//	server := mcpserver.New(runner, mcpserver.Options{Version: "1.2.3"})
//	err := mcpserver.Serve(ctx, server, &stdio.Transport{In: os.Stdin, Out: out})
//
// Each tool decodes its arguments, makes one engine call and encodes the answer. Arguments are
// checked here and not by the SDK, so that a bad argument gets the protocol's VALIDATION_ERROR with every issue.
// Answers have the protocol's fields, and pending and next besides. The text of an answer states the same facts as its
// structured content.
package mcpserver
