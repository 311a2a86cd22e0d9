//go:build !unix

package main

// A system that does not report orphans has nothing to test.
const asHost, asStep = "WORKFLOWS_ENGINE_MCP_TEST_AS_HOST", "WORKFLOWS_ENGINE_MCP_TEST_AS_STEP"

func beHost() {}
func beStep() {}
