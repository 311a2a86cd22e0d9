package toolcall

// The keys of log lines.
const (
	logServer = "server"
	logPID    = "pid"
	logState  = "state"
	logLine   = "line"
	logTool   = "tool"
	logMember = "member"
	logError  = "error"
)
