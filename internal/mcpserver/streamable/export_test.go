package streamable

// The limits.
const (
	MaxSessions   = maxSessions
	MaxLargeReads = maxLargeReads
)
