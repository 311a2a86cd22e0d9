// Package childprocess starts the programs that an operator has configured, MCP servers and step commands, and leaves
// nothing of them behind: each leads a process group of its own, which is killed when the program has ended or was told
// to end. A child gets little of the engine's environment, its secrets come from references, and what it prints on
// standard error is kept and logged with those secrets masked.
package childprocess
