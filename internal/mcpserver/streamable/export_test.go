package streamable

// The limits.
const (
	MaxSessions    = maxSessions
	MaxConnections = maxConnections
	MaxLargeReads  = maxLargeReads
)
