package streamable

// The limits.
const (
	MaxSessions    = maxSessions
	MaxConnections = maxConnections
	MaxStrangers   = maxStrangers
	StrangerTime   = strangerTime
	MaxLargeReads  = maxLargeReads
)
