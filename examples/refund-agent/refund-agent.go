// Package refundagent holds the files of the example refund-agent, for the program that runs it.
package refundagent

import "embed"

// Files are the definition, the agents and the cases.
//
//go:embed *.yaml *.json
var Files embed.FS
