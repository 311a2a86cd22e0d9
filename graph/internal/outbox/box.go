package outbox

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Box makes the deliveries of events.
type Box struct {
	Targets Targets
	Now     func() time.Time
	// Redaction masks secrets in bodies.
	Redaction history.Redaction
	// Glossary has the names that hints in bodies use.
	Glossary problem.Glossary
	// Sender sends the deliveries; nil leaves them to other processes.
	Sender *Sender
}

// Stored is called with deliveries once they are in the store.
func (b *Box) Stored(ds []history.Delivery) {
	if b.Sender != nil {
		b.Sender.Stored(ds)
	}
}

// Deliveries returns the deliveries of a batch, one for each target, or nil. before is the phase of the run before the batch, after the run
// after it. Subworkflows have the targets of their root run, and only their questions are events: no record of the root has them. A target
// that is not configured here gets every event, since only a process that has it knows its Events. view returns the run for the body.
func (b *Box) Deliveries(before history.Phase, after *history.Execution, records []history.Record, view func() *view.Run) []history.Delivery {
	event, root := EventOf(before, after, records)
	if event == "" {
		return nil
	}
	var out []history.Delivery
	for _, name := range b.Targets.withAll(after.Notify) {
		if t, known := b.Targets[name]; known && !t.wants(event) {
			continue
		}
		out = append(out, history.Delivery{ID: newID("dlv_"), Event: event, Target: name})
	}
	if len(out) == 0 {
		return nil
	}
	// A store rounds due times up to the millisecond: without Truncate the delivery would not be due at once.
	at, id := b.Now().Truncate(time.Millisecond), newID("evt_")
	body := b.Body(Heading{Event: event, ID: id, At: at, Root: root}, view())
	for i := range out {
		d := &out[i]
		d.EventID, d.Body, d.CreatedAt, d.Due = id, body, at, at
	}
	return out
}

// rootOf returns the id of the root run above a subworkflow, "" for a root run.
func rootOf(run *history.Execution) string {
	if above := history.Ancestors(run.ID); len(above) > 0 {
		return above[len(above)-1]
	}
	return run.Parent
}

func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// EventOf returns the event of a batch, "" without one, and the root run of a subworkflow, "" for a root run. before is the phase of the run
// before the batch, after the run after it. Each question of an interrupted run is an event.
func EventOf(before history.Phase, after *history.Execution, records []history.Record) (event history.RunEvent, root string) {
	event, root = phaseEvent(before, after.Phase, records), rootOf(after)
	if root != "" && event != history.RunInterrupted {
		event = ""
	}
	return event, root
}

func phaseEvent(before, after history.Phase, records []history.Record) history.RunEvent {
	switch after {
	case history.PhaseCompleted:
		return history.RunCompleted
	case history.PhaseFailed:
		return history.RunFailed
	case history.PhaseCancelled:
		if n := len(records); n > 0 && records[n-1].Payload.KeepTasks {
			return "" // it continues elsewhere, and its events come from there
		}
		return history.RunCancelled
	case history.PhaseInterrupted:
		if before != history.PhaseInterrupted {
			return history.RunInterrupted
		}
		for i := range records {
			if records[i].Name == history.InterruptRaised {
				return history.RunInterrupted
			}
		}
	}
	return ""
}

// Test returns a delivery for testing a target. It has no run and is not stored.
func Test(target string, at time.Time) history.Delivery {
	id := newID("evt_")
	m := jsonvalue.Ordered{{"event", testEvent}, {"event_id", id}, {"created_at", history.FormatTimestamp(at)}}
	return history.Delivery{ID: newID("dlv_"), EventID: id, Event: testEvent, Target: target, Body: m.Append(nil), CreatedAt: at, Attempts: 1}
}

// testEvent is the event of a Test delivery.
const testEvent = "webhook.test"
