package outbox

import (
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// Pauses are the pauses after each failed attempt. The first attempt is made at once; a delivery that fails after the last pause is dead.
var Pauses = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute}

// MaxRetryAfter is the longest pause that a target can ask for.
const MaxRetryAfter = time.Hour

// next returns the state of a delivery after an attempt.
func next(d *history.Delivery, r history.Receipt, now time.Time) (state history.DeliveryState, due time.Time, step int) {
	switch r.Outcome {
	case history.Sent:
		return history.DeliveryDone, now, d.Step
	case history.SendRefused:
		return history.DeliveryDead, now, d.Step + 1
	case history.SendStopped:
		return history.DeliveryPending, d.Due, d.Step
	}
	if d.Step >= len(Pauses) {
		return history.DeliveryDead, now, d.Step + 1
	}
	return history.DeliveryPending, now.Add(max(Pauses[d.Step], min(r.RetryAfter, MaxRetryAfter))), d.Step + 1
}
