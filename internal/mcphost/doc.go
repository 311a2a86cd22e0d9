// Package mcphost registers the engine's MCP server in the configuration files of MCP hosts, and unregisters it. It knows
// where each host keeps its file, and edits only its own entry: everything else, comments and line ends included, stays as
// unchanged. Only JSON is edited; for a host with a TOML file a person makes the change, as AddByHand and RemoveByHand describe
// it. Start with Known, then File, Read and Edit.
package mcphost
