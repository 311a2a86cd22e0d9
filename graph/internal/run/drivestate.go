package run

// DriveState is what a process knows of a run, and who drives it.
type DriveState int

// The states of a run in a process.
const (
	// Unloaded: the process knows no more than what it has seen of the run's projection, if anything.
	Unloaded DriveState = iota
	// Following: the run is loaded. Another process drives it, or nobody needs to.
	Following
	// Claimed: this process owns the run. The machine may have to be loaded, and what is in flight and not performed here is
	// to be begun.
	Claimed
	// Driving: this process owns the run, and performs all that is in flight and that it can perform.
	Driving
	// Ended: the run has ended. The machine that ended it may still be there.
	Ended
)

// String returns the state's name.
func (s DriveState) String() string {
	return [...]string{"unloaded", "following", "claimed", "driving", "ended"}[s]
}

// Owned reports whether this process owns a run in the state.
func (s DriveState) Owned() bool { return s == Claimed || s == Driving }

// transitions are the changes of state that can happen, and what brings each about.
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
		Driving:   "what was in flight has been begun",
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

// CanFollow reports whether a run can get from one state to the other.
func CanFollow(from, to DriveState) bool { return transitions[from][to] != "" }
