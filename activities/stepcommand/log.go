package stepcommand

// The keys of log lines.
const (
	logHandler = "handler"
	logRun     = "execution_id"
	logNode    = "node_id"
	logLine    = "line"
)
