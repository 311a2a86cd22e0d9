//go:build !unix

package main

// Where orphans cannot be told there is nothing to play.
const asHost, asStep = "WORKFLOWS_ENGINE_MCP_TEST_AS_HOST", "WORKFLOWS_ENGINE_MCP_TEST_AS_STEP"

func beHost() {}
func beStep() {}
