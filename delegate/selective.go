package delegate

// Selective is implemented by executors that serve some protocols only, such as Composite. A process takes a run over
// from another one, fires its timers or goes on with it after an answer or a signal, only if it can perform all that the
// run may still come to.
type Selective interface {
	Executor
	// Performs reports whether delegations of this protocol are performed: "a2a", "mcp" or "sdk".
	Performs(protocol string) bool
}

// AgentSelective is implemented by executors that serve some agents of a protocol only, for the same reason.
type AgentSelective interface {
	Executor
	// PerformsAgent reports whether delegations of this protocol to this agent are performed.
	PerformsAgent(protocol, agentID string) bool
}
