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

// RunEvent is a change of a run that can be delivered to targets.
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

// DeliveryState is the state of a delivery.
type DeliveryState string

// All states of deliveries.
const (
	// DeliveryPending: the delivery is sent when it is due. Its run cannot be deleted.
	DeliveryPending DeliveryState = "pending"
	// DeliveryDone: the target accepted the delivery.
	DeliveryDone DeliveryState = "delivered"
	// DeliveryDead: sending was given up.
	DeliveryDead DeliveryState = "dead"
	// DeliveryUnwanted: the target does not want this event, and the process that wrote the delivery did not know that.
	DeliveryUnwanted DeliveryState = "unwanted"
	// DeliveryMoved: the delivery was copied to another store, which sends it.
	DeliveryMoved DeliveryState = "moved"
)

// DeliveryStates returns all states.
func DeliveryStates() []DeliveryState {
	return []DeliveryState{DeliveryPending, DeliveryDone, DeliveryDead, DeliveryUnwanted, DeliveryMoved}
}

// Delivery is an event of a run, to be sent to one target. It is written in the same transaction as the event, so that it cannot be lost. It
// is sent at least once, always with the same EventID, until the target accepts it or sending is given up.
type Delivery struct {
	// ID is unique among all deliveries. Deliveries of one event to several targets share the EventID.
	ID, EventID string
	ExecutionID string
	// Seq is the seq of the last record of the event's batch.
	Seq    int64
	Event  RunEvent
	Target string
	// Body is the content to send. Lists of deliveries omit it, unless DeliveryQuery.Bodies is set.
	Body      []byte
	CreatedAt time.Time
	State     DeliveryState
	// Due is the time of the next attempt.
	Due time.Time
	// Step counts the failed attempts since the delivery was created or last requeued (Store.RequeueDelivery).
	Step int
	// Attempts counts all attempts; it is the number of the newest one.
	Attempts int
	// Tries are the attempts, oldest first. Only ListDeliveries returns them.
	Tries []DeliveryAttempt
}

// DeliveryAttempt is one attempt to send a delivery. It is stored before anything is sent.
type DeliveryAttempt struct {
	// Number counts from 1.
	Number int
	// Process is the sending process.
	Process string
	// EndedAt is zero during the attempt, and after a crash of its process: then the target may have received the delivery or not.
	BeganAt, EndedAt time.Time
	// Outcome is "" until the attempt has an outcome.
	Outcome SendOutcome
	// Status is the status code of the response, 0 without a response.
	Status int
	// Error describes the failure.
	Error string
}

// AttemptID returns an id for an attempt that is unique among the attempts of all deliveries.
func AttemptID(deliveryID string, number int) string { return deliveryID + "." + strconv.Itoa(number) }

// DeliveryOf returns the delivery id for the id of a delivery or of one of its attempts.
func DeliveryOf(id string) string {
	delivery, _, _ := strings.Cut(strings.TrimSpace(id), ".")
	return delivery
}

// SendOutcome is the outcome of an attempt to send.
type SendOutcome string

// All outcomes.
const (
	// Sent: the target accepted the delivery.
	Sent SendOutcome = "delivered"
	// SendAgain: the attempt failed for a possibly temporary reason.
	SendAgain SendOutcome = "failed"
	// SendRefused: the target does not want the delivery.
	SendRefused SendOutcome = "refused"
	// SendStopped: the process was stopped during the attempt. This does not count as a failure.
	SendStopped SendOutcome = "stopped"
)

// Receipt describes the outcome of an attempt.
type Receipt struct {
	Outcome SendOutcome
	// Status is the status code of the response, 0 without a response.
	Status int
	// RetryAfter is the delay that the target asked for, 0 if it did not ask.
	RetryAfter time.Duration
	// Error describes the failure, without secrets, because it is stored.
	Error string
}

// DeliveryClaim begins an attempt.
type DeliveryClaim struct {
	DeliveryID string
	// Attempt is the number of the new attempt: Delivery.Attempts of the due delivery, plus 1.
	Attempt int
	// Process is the sending process. TTL is how long other processes cannot claim the delivery.
	Process string
	TTL     time.Duration
	// At is the start time of the attempt.
	At time.Time
}

// Settlement ends an attempt.
type Settlement struct {
	DeliveryID string
	Attempt    int
	// At is the end time of the attempt.
	At time.Time
	Receipt
	// State, Due and Step are the delivery's new values.
	State DeliveryState
	Due   time.Time
	Step  int
}

// DeliveryQuery selects deliveries. Zero values do not filter.
type DeliveryQuery struct {
	ExecutionID, DeliveryID, Target string
	States                          []DeliveryState
	// Bodies includes the bodies.
	Bodies bool
	// Limit is 1 to 1000; 0 means 100.
	Limit int
	// Cursor is DeliveryPage.NextCursor of the previous page.
	Cursor string
}

// DeliveryPage is a page of deliveries, newest first.
type DeliveryPage struct {
	Deliveries []Delivery
	// NextCursor is "" on the last page.
	NextCursor string
}

const (
	defaultDeliveries = 100
	maxDeliveries     = 1000
)

// Check validates the query and sets the defaults. before is the exclusive upper bound of the page's delivery numbers, 0 for the first page.
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

// UnknownDelivery returns the error for a delivery that does not exist.
func UnknownDelivery(id string) error {
	return problem.New(problem.DeliveryNotFound, "no delivery has the id %q", id).
		WithHint("The command webhook list shows the deliveries; deleting a run deletes its deliveries.")
}

// checkDeliveries returns an error if a store could not read the deliveries again.
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
