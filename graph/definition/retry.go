package definition

import (
	"crypto/sha256"
	"encoding/binary"
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
	// Jitter is the part of each delay, 0 to 1, that varies from run to run and from attempt to attempt; 0 without jitter.
	// Added to the protocol.
	Jitter float64
	// NonRetryable lists exact failure codes that end the attempts.
	NonRetryable []string
	// Err is set when an interval is an invalid duration: the node fails when a back-off is due.
	Err error
	// capped distinguishes a max_interval of 0 from an absent one.
	capped bool
}

// Delay returns the back-off before attempt next (2, 3, …): min(initial × coefficient^(next-2), max), with 0⁰ = 1.
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

// DelayOf is Delay with the attempt's jitter: up to that part of the delay is taken off, so that it never grows beyond
// max_interval. How much depends on the key alone, which names the attempt among all runs: runs that failed together
// come back apart, and a run that is rebuilt waits as long as before.
func (r *Retry) DelayOf(next int, key string) time.Duration {
	d := r.Delay(next)
	if r.Jitter <= 0 || d <= 0 {
		return d
	}
	sum := sha256.Sum256([]byte(key))
	lot := float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53) // evenly spread over [0, 1)
	return d - time.Duration(float64(d)*min(r.Jitter, 1)*lot)
}
