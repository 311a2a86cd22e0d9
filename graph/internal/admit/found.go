package admit

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Found is the result of a search for a repeated call.
type Found struct {
	Repeat
	// Record is the recorded outcome, answer or signal: with the key of the rejected call, or else the last one for the same place. If
	// two calls came at once, it tells the later caller about the earlier call. Nil if the history has no such record.
	Record *history.Record

	run string // the run of the record
	by  string // the actor of that call, if known
}

// in sets the run of the record, unless it is set.
func (f *Found) in(executionID string) {
	if f.Record != nil && f.run == "" {
		f.run = executionID
	}
}

// withActor adds the actor of the record, from the first record of its call.
func (f Found) withActor(ctx context.Context, past Past) Found {
	if f.Record == nil || f.Repeat == Repeated {
		return f
	}
	actor := f.Record.Payload.Actor
	switch f.Record.Name {
	case history.InterruptResumed, history.SignalReceived, history.SignalKept:
		before, err := past.Read(ctx, f.run, f.Record.Seq-1, 1)
		if actor == nil && err == nil && len(before) == 1 && before[0].Kind == history.Command {
			actor = before[0].Payload.Actor
		}
	}
	if actor != nil {
		f.by = actor.String()
	}
	return f
}

// Verdict returns the error of a rejected call after the search: nil for a repeated call. label names the key of the call.
func (f Found) Verdict(refusal error, code problem.Code, at problem.Place, label string) error {
	if f.Repeat == Repeated {
		return nil
	}
	refused, ok := problem.As(refusal)
	if f.Repeat == KeyReused {
		now := "Ask Runner.Status for the current waits."
		if ok && refused.Hint != "" {
			now = strings.TrimPrefix(refused.Hint, "Nothing was changed. ") // it names the current wait
		}
		e := problem.New(code, "%s was used before, with another content", label).WithReason(problem.AnsweredDifferently).WithPlace(at)
		return f.told(e).WithHint("The first record is valid; nothing was changed.%s %s", f.said(), now)
	}
	if !ok || f.Record == nil {
		return refusal
	}
	e := *refused
	return f.told(&e).WithHint("%s", strings.TrimSpace(e.Hint+f.said()))
}

// Again returns the rejection of a call whose content equals the last record, but which may be a different call.
func (f Found) Again(refused *problem.Error) error {
	e := *refused
	e.Details = maps.Clone(e.Details)
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details["repeated"] = true
	by := ""
	if f.by != "" {
		by = " by " + f.by
	}
	return f.told(&e).WithHint("This answer was recorded before%s, at %s (seq %d): nothing was changed, and nothing is left to do for it. %s", by, f.at(), f.Record.Seq, e.Hint)
}

const (
	// maxRecorded is the largest recorded content, in bytes, included in the details of a rejection.
	maxRecorded = 1 << 10
	// maxSaid bounds the recorded content in the hint, in bytes.
	maxSaid = 300
)

// said describes the record in a sentence, "" without one.
func (f Found) said() string {
	if f.Record == nil {
		return ""
	}
	_, content := f.content()
	by := ""
	if f.by != "" {
		by = " by " + f.by
	}
	return fmt.Sprintf(" Recorded%s at %s: %s.", by, f.at(), problem.Excerpt(string(jsonvalue.Canonical(content)), maxSaid))
}

func (f Found) at() string { return f.Record.CreatedAt.UTC().Format(time.RFC3339) }

// told adds the record to the details of a rejection.
func (f Found) told(e *problem.Error) *problem.Error {
	if f.Record == nil {
		return e
	}
	recorded := map[string]any{"seq": float64(f.Record.Seq), "at": f.at()}
	if f.by != "" {
		recorded["by"] = f.by
	}
	name, content := f.content()
	if size := jsonvalue.Size(content, maxRecorded); size <= maxRecorded {
		recorded[name] = content
	}
	details := map[string]any{"recorded": recorded}
	for name, v := range e.Details {
		details[name] = v
	}
	e.Details = details
	return e
}

// content returns the recorded content, with the name of the argument in a call, without secrets.
func (f Found) content() (name string, value any) {
	p := &f.Record.Payload
	switch f.Record.Name {
	case history.ActivityCompleted:
		name, value = "outcome", map[string]any{"ok": true, "result": p.Result.Value}
	case history.ActivityFailed:
		failed := map[string]any{"ok": false, "error": p.Error}
		if p.Code != "" {
			failed["code"] = p.Code
		}
		name, value = "outcome", failed
	case history.InterruptResumed:
		if p.AnswerExpired() {
			return "ended", "without an answer, since its time was over"
		}
		fallthrough
	default: // of a question or a signal
		payload := p.SignalPayload
		if payload == nil {
			payload = map[string]any{}
		}
		name, value = "payload", payload
	}
	return name, history.RedactValue(value)
}
