package machine

import "strconv"

// visitKey identifies a visit within a run: "<node>#<visit>".
func visitKey(nodeID string, visit int) string {
	return nodeID + "#" + strconv.Itoa(visit)
}

// attemptKey identifies an attempt within a run: "<node>#<visit>.<attempt>".
func attemptKey(nodeID string, visit, attempt int) string {
	return visitKey(nodeID, visit) + "." + strconv.Itoa(attempt)
}

// key identifies the token's wait: an attempt by its number, an interrupt, signal or timer by its visit. The only
// attempt of a subworkflow is 1.
func (t *token) key() string {
	switch t.wait.Kind {
	case WaitActivity, WaitDelegate, WaitChild:
		return attemptKey(t.node.ID, t.visit, max(t.wait.Attempt, 1))
	case waitWalk:
		return walkKey(t)
	case WaitBackoff:
		return attemptKey(t.node.ID, t.visit, t.wait.Attempt+1)
	default:
		return visitKey(t.node.ID, t.visit)
	}
}

// timerRun is the key of the timer that ends the run at its deadline.
const timerRun = "run:deadline"

// The prefix of a timer key is the purpose of the timer.
const (
	timerWait     = "timer:"
	timerBackoff  = "backoff:"
	timerDeadline = "deadline:"
	timerPoll     = "poll:"
	timerRest     = "rest:"
	timerQueue    = "queue:"
	timerLimit    = "limit:"
)
