package run

// DriveState is a process's relation to a run.
type DriveState int

// The states of a run in a process.
const (
	// Unloaded: the process knows at most the run's projection.
	Unloaded DriveState = iota
	// Following: the run is loaded. Another process owns it, or it needs no owner.
	Following
	// Claimed: this process owns the run. The machine may have to be loaded, and effects in flight to be begun.
	Claimed
	// Driving: this process owns the run, and performs the effects in flight that it can.
	Driving
	// Ended: the run has ended. Its machine may still be loaded.
	Ended
)

// String returns the state's name.
func (s DriveState) String() string {
	return [...]string{"unloaded", "following", "claimed", "driving", "ended"}[s]
}

// Owned reports whether this process owns a run in the state.
func (s DriveState) Owned() bool { return s == Claimed || s == Driving }

// transitions lists the possible changes of state, and the cause of each.
var transitions = map[DriveState]map[DriveState]string{
	Unloaded: {
		Following: "the run was loaded, or begun here",
		Claimed:   "an append of this process was the first of a run that it had not finished loading",
		Ended:     "the run was found ended",
	},
	Following: {
		Unloaded: "the machine is ahead of the history, or behind it",
		Claimed:  "the process became the run's owner, by a claim or with an append",
		Ended:    "the run ended",
	},
	Claimed: {
		Unloaded:  "the process lost the run, or gave up recording it",
		Following: "the run was disowned",
		Driving:   "the effects in flight have been started",
		Ended:     "the run ended",
	},
	Driving: {
		Unloaded:  "the process lost the run, or gave up recording it",
		Following: "the run was disowned",
		Claimed:   "the machine is ahead of the history, or behind it",
		Ended:     "the run ended",
	},
	Ended: {
		Unloaded:  "the id may have been used again since",
		Following: "the id has been used again",
	},
}

// CanFollow reports whether a run can change from one state to the other.
func CanFollow(from, to DriveState) bool { return transitions[from][to] != "" }
