// Package delegate performs agent_delegate nodes: executors for the protocols a2a, mcp and sdk.
package delegate
