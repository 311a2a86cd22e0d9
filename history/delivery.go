package history

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// RunEvent is what happens to a run that others may want to know of.
type RunEvent string

// All events of runs.
const (
	RunCompleted   RunEvent = "run.completed"
	RunFailed      RunEvent = "run.failed"
	RunInterrupted RunEvent = "run.interrupted"
	RunCancelled   RunEvent = "run.cancelled"
)

// RunEvents returns all events.
func RunEvents() []RunEvent { return []RunEvent{RunCompleted, RunFailed, RunInterrupted, RunCancelled} }

// DeliveryState says what becomes of a delivery.
type DeliveryState string

// All states of deliveries.
const (
	// DeliveryPending: it is sent when it is due. Its run is not deleted.
	DeliveryPending DeliveryState = "pending"
	// DeliveryDone: the target has taken it.
	DeliveryDone DeliveryState = "delivered"
	// DeliveryDead: it has been given up.
	DeliveryDead DeliveryState = "dead"
	// DeliveryUnwanted: the target does not want such events, which the process that wrote it did not know.
	DeliveryUnwanted DeliveryState = "unwanted"
)

// DeliveryStates returns all states.
func DeliveryStates() []DeliveryState {
	return []DeliveryState{DeliveryPending, DeliveryDone, DeliveryDead, DeliveryUnwanted}
}

// Delivery is an event of a run on its way to one target. It is written in the transaction that brings the event, so that none is lost,
// and is sent until the target takes it or it is given up: at least once, always with the same EventID.
type Delivery struct {
	// ID is unique among all deliveries. Deliveries of one event to several targets have one EventID.
	ID, EventID string
	ExecutionID string
	// Seq is the last record of the batch that brought the event.
	Seq    int64
	Event  RunEvent
	Target string
	// Body is what is sent. Lists of deliveries are without.
	Body      []byte
	CreatedAt time.Time
	State     DeliveryState
	// Due is when the next attempt is to be made.
	Due time.Time
	// Step counts the attempts that have failed since the delivery was made, or last made anew (Store.RequeueDelivery).
	Step int
	// Attempts counts all attempts: the newest has this number.
	Attempts int
	// Tries are the attempts, the first one first. Only ListDeliveries returns them.
	Tries []DeliveryAttempt
}

// DeliveryAttempt is one attempt to send a delivery. It is stored before anything is sent.
type DeliveryAttempt struct {
	// Number counts from 1.
	Number int
	// Process is the one that sends.
	Process string
	// EndedAt is zero while it is under way, and if its process has died meanwhile: the target may have got it or not.
	BeganAt, EndedAt time.Time
	// Outcome is "" as long as there is none.
	Outcome SendOutcome
	// Status is that of the answer, 0 without one.
	Status int
	// Error says why it failed.
	Error string
}

// AttemptID names an attempt among those of all deliveries.
func AttemptID(deliveryID string, number int) string { return deliveryID + "." + strconv.Itoa(number) }

// DeliveryOf returns the id of the delivery that an id, of it or of one of its attempts, belongs to.
func DeliveryOf(id string) string {
	delivery, _, _ := strings.Cut(strings.TrimSpace(id), ".")
	return delivery
}

// SendOutcome says what an attempt has come to.
type SendOutcome string

// All outcomes.
const (
	// Sent: the target has taken it.
	Sent SendOutcome = "delivered"
	// SendAgain: it failed for a reason that may pass.
	SendAgain SendOutcome = "failed"
	// SendRefused: the target does not want it.
	SendRefused SendOutcome = "refused"
	// SendStopped: the process was stopped meanwhile. It does not count as a failure.
	SendStopped SendOutcome = "stopped"
)

// Receipt is what became of an attempt.
type Receipt struct {
	Outcome SendOutcome
	// Status is that of the answer, 0 without one.
	Status int
	// RetryAfter is how long the target wants to be left alone, 0 if it does not say.
	RetryAfter time.Duration
	// Error says why the attempt failed, without secrets: it is stored.
	Error string
}

// DeliveryClaim begins an attempt.
type DeliveryClaim struct {
	DeliveryID string
	// Attempt is the number of the new attempt: Delivery.Attempts of the delivery that was found due, and 1.
	Attempt int
	// Process is the one that sends, TTL how long it keeps others from it.
	Process string
	TTL     time.Duration
	// At is when the attempt begins.
	At time.Time
}

// Settlement ends an attempt.
type Settlement struct {
	DeliveryID string
	Attempt    int
	// At is when it ended.
	At time.Time
	Receipt
	// State, Due and Step are the delivery's from then on.
	State DeliveryState
	Due   time.Time
	Step  int
}

// DeliveryQuery selects deliveries. Zero values do not filter.
type DeliveryQuery struct {
	ExecutionID, DeliveryID, Target string
	States                          []DeliveryState
	// Limit is 1 to 1000; 0 means 100.
	Limit int
	// Cursor is DeliveryPage.NextCursor of the page before.
	Cursor string
}

// DeliveryPage is a page of deliveries, the newest first.
type DeliveryPage struct {
	Deliveries []Delivery
	// NextCursor is "" on the last page.
	NextCursor string
}

const (
	defaultDeliveries = 100
	maxDeliveries     = 1000
)

// Check refuses an invalid query, sets the defaults, and returns the number before which the page begins, 0 for the first one.
func (q *DeliveryQuery) Check() (before int64, err error) {
	if q.Limit < 0 || q.Limit > maxDeliveries {
		return 0, problem.New(problem.ValidationError, "invalid limit %d: expected 1 to %d", q.Limit, maxDeliveries)
	}
	q.Limit = cmp.Or(q.Limit, defaultDeliveries)
	if q.Cursor == "" {
		return 0, nil
	}
	before, err = strconv.ParseInt(q.Cursor, 10, 64)
	if err != nil || before <= 0 {
		return 0, problem.New(problem.InvalidListCursor, "invalid cursor %q", q.Cursor).
			WithHint("Pass NextCursor of the previous page unchanged, with the same filters.")
	}
	return before, nil
}

// UnknownDelivery returns the error of a delivery that does not exist.
func UnknownDelivery(id string) error {
	return problem.New(problem.DeliveryNotFound, "no delivery has the id %q", id).
		WithHint("The command webhooks list shows the deliveries; those of deleted runs are gone.")
}

// checkDeliveries refuses deliveries that could not be read again.
func (b *Batch) checkDeliveries() error {
	for i := range b.Deliveries {
		d := &b.Deliveries[i]
		switch {
		case d.ID == "" || d.EventID == "" || d.Event == "" || d.Target == "" || strings.Contains(d.ID, "."):
			return fmt.Errorf("delivery %d has no id, event or target", i)
		case !utf8.ValidString(d.Target) || !utf8.Valid(d.Body):
			return fmt.Errorf("delivery %d is not UTF-8", i)
		case len(b.Records) == 0:
			return fmt.Errorf("delivery %d belongs to no record", i)
		}
	}
	return nil
}
