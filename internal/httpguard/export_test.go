package httpguard

// The limits.
const (
	MaxStrangers = maxStrangers
	StrangerTime = strangerTime
)
