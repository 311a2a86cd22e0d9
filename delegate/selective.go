package delegate

// Selective is implemented by executors that serve some protocols only, such as Composite, for the same reason as
// activities.Selective.
type Selective interface {
	Executor
	// Performs reports whether delegations of this protocol are performed: "a2a", "mcp" or "sdk".
	Performs(protocol string) bool
}

// AgentSelective is implemented by executors that serve some agents of a protocol only, for the same reason as
// activities.NodeSelective.
type AgentSelective interface {
	Executor
	// PerformsAgent reports whether delegations of this protocol to this agent are performed.
	PerformsAgent(protocol, agentID string) bool
}
