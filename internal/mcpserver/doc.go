// Package mcpserver is the MCP face of the engine: the protocol's seven tools and a few resources over the official SDK.
//
//	server := mcpserver.New(runner, mcpserver.Options{Version: "1.2.3"})
//	err := mcpserver.Serve(ctx, server, &stdio.Transport{In: os.Stdin, Out: out})
//
// Each tool is decode, one engine call, encode; nothing is decided here. Arguments are checked here and not by the SDK,
// so that a bad argument gets the protocol's VALIDATION_ERROR with every issue. Answers have the protocol's members and
// say besides what the run waits for and which call continues it. The text of an answer carries the same facts as
// its structured content.
package mcpserver
