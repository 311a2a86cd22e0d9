package definition

import (
	"math"
	"time"
)

// Retry is a node's retry policy (spec: definition, 3.1).
type Retry struct {
	MaxAttempts int
	// Initial is the delay before attempt 2; Max caps every delay, 0 means no cap.
	Initial, Max time.Duration
	// Coefficient multiplies the delay for each further attempt; negative values have been turned into 1.
	Coefficient float64
	// NonRetryable lists exact failure codes that end the attempts.
	NonRetryable []string
	// Err is set when an interval is no duration: the node fails when a back-off is due.
	Err error
	// capped tells a max_interval of 0 from none.
	capped bool
}

// Delay gives the back-off before attempt next (2, 3, …): min(initial × coefficient^(next-2), max), with 0⁰ = 1.
func (r *Retry) Delay(next int) time.Duration {
	ms := float64(r.Initial) / float64(time.Millisecond)
	if ms > 0 && next > 2 {
		ms *= math.Pow(r.Coefficient, float64(next-2))
	}
	d := boundedMilliseconds(ms)
	if (r.capped || r.Max > 0) && d > r.Max {
		return r.Max
	}
	return d
}
