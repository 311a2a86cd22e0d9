// Package researchagent holds the files of the example research-agent, for the program that runs it.
package researchagent

import "embed"

// Files are the definition, the agent, and the folders that it reads.
//
//go:embed *.yaml *.json files knowledge
var Files embed.FS
