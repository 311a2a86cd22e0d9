package machine

import "strconv"

// visitKey names a visit within a run: "<node>#<visit>".
func visitKey(nodeID string, visit int) string {
	return nodeID + "#" + strconv.Itoa(visit)
}

// attemptKey names an attempt within a run: "<node>#<visit>.<attempt>".
func attemptKey(nodeID string, visit, attempt int) string {
	return visitKey(nodeID, visit) + "." + strconv.Itoa(attempt)
}

// key names what the token waits for. Attempts have a number of their own; interrupts, signals and timers are named
// by their visit; a subworkflow's only attempt is 1.
func (t *token) key() string {
	switch t.wait.Kind {
	case WaitActivity, WaitDelegate, WaitChild:
		return attemptKey(t.node.ID, t.visit, max(t.wait.Attempt, 1))
	case WaitBackoff:
		return attemptKey(t.node.ID, t.visit, t.wait.Attempt+1)
	default:
		return visitKey(t.node.ID, t.visit)
	}
}

// The prefixes of timer keys tell the kinds apart.
const (
	timerWait     = "timer:"
	timerBackoff  = "backoff:"
	timerDeadline = "deadline:"
	timerPoll     = "poll:"
)
