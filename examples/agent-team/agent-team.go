// Package agentteam holds the files of the example agent-team, for the program that runs it.
package agentteam

import "embed"

// Files are the definition and the agents.
//
//go:embed *.yaml *.json
var Files embed.FS
