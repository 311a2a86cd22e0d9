package graph

// The keys of log records.
const (
	logRun    = "execution_id"
	logNode   = "node_id"
	logKey    = "effect"
	logSeq    = "seq"
	logError  = "error"
	logTimer  = "timer"
	logChild  = "child_execution_id"
	logTask   = "external_task_id"
	logDetail = "details"
	logStack  = "stack"
)
