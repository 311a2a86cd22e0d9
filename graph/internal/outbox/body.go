package outbox

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// MaxBody is the largest body, in bytes. A longer one leaves out values of the run.
const MaxBody = 256 << 10

// maxText is the largest error or reason, in bytes, in a body that had to be shortened.
const maxText = 4 << 10

// Heading holds the fields of a body before the run. Root is the root run of a subworkflow, "" for a root run. Truncated is set if the run lacks
// values already.
type Heading struct {
	Event     history.RunEvent
	ID        string
	At        time.Time
	Root      string
	Truncated bool
}

// Body encodes the body of a delivery: the event, and the run as workflow_status returns it. A body longer than MaxBody leaves out states,
// then results and the values of waits, then the waits, and has "truncated": true.
func (b *Box) Body(h Heading, run *view.Run) []byte {
	text := b.encode(h, run, h.Truncated)
	for _, shrink := range []func(*view.Run){withoutStates, withoutValues, withoutWaits} {
		if len(text) <= MaxBody {
			break
		}
		shrink(run)
		text = b.encode(h, run, true)
	}
	return text
}

func (b *Box) encode(h Heading, run *view.Run, truncated bool) []byte {
	m := jsonvalue.Ordered{{"event", string(h.Event)}, {"event_id", h.ID}, {"created_at", history.FormatTimestamp(h.At)}}
	m.Text("root_execution_id", h.Root)
	if truncated {
		m.Put("truncated", true)
	}
	m.Put("run", runjson.Full(run, b.Glossary))
	return b.Redaction.Text(m.Append(nil))
}

func withoutStates(run *view.Run) {
	run.State, run.FinalState = nil, nil
	for i := range run.Pending {
		run.Pending[i].State = nil
	}
}

func withoutValues(run *view.Run) {
	run.Result = nil
	for i := range run.Pending {
		p := &run.Pending[i]
		p.Config, p.OutputSchema, p.ResumeSchema, p.Show, p.DelegateInput, p.Totals = nil, nil, nil, nil, nil, nil
	}
}

func withoutWaits(run *view.Run) {
	run.Pending, run.Maps, run.KeptSignals, run.Rollbacks, run.Warnings = nil, nil, nil, nil, nil
	run.Error, run.Reason = beginning(run.Error), beginning(run.Reason)
}

func beginning(text string) string {
	if len(text) <= maxText {
		return text
	}
	return string([]rune(text[:maxText])) // a character that is cut in two becomes U+FFFD
}
