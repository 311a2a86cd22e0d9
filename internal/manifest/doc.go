// Package manifest reads the operator's manifest: the MCP servers whose tools tool_call nodes may call, and the agents
// that are reached through such tools (spec: cli-and-config, 8).
//
// The file has the form that MCP hosts use, so that a host's own file works here. Members that the
// protocol does not know but hosts do are understood (type, cwd, url, headers, disabled) or reported as ignored; they
// never refuse the file.
//
// It also reads the operator's list of programs that perform steps, which is of the same kind but strict: a member that
// is not known refuses it.
//
//	m, findings := manifest.Parse(text)
//	if findings.HasErrors() { … } // m is nil then
package manifest
