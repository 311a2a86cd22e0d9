// Package toolcall performs tool_call nodes: it calls the tools of MCP servers that the operator has configured (spec:
// activities, 6).
//
//	executor, err := toolcall.New(toolcall.Config{
//		Servers: map[string]toolcall.Server{"files": {Command: "npx", Args: []string{"-y", "files-server"}}},
//		Environ: os.Environ(),
//	})
//	…
//	defer executor.Close()
//
// A server is started when one of its tools is first called. The session is then kept for all later calls, which may
// run side by side; it ends when it was idle for a while, when a call has timed out, and at Close. A server that has
// died is started again by the next call, after a pause that grows with every failure in a row. Its process is the head
// of its own group, so that its child processes end with it.
//
// A server gets little of the engine's environment (see Config.Environ) and the arguments of a call as the definition
// has them. Its standard error is logged, and its end is part of a failure's text; values that came
// from secret references are masked in both.
package toolcall
