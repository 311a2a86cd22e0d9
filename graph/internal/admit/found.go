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

// Found is what a search for a repeated call has found.
type Found struct {
	Repeat
	// Record is the outcome, answer or signal that the history has where the call was refused: under its key, or else the last one for the
	// same. Of two calls that came at once it tells the later one what the earlier one said. Nil if there is none.
	Record *history.Record

	run string // whose record it is
	by  string // who made that call, if known
}

// in says in whose history the record was found, unless that is known.
func (f *Found) in(executionID string) {
	if f.Record != nil && f.run == "" {
		f.run = executionID
	}
}

// withActor adds who made the call of the record, as its first record says.
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

// Verdict returns the error of a refused call that was looked for in the history: nil if it was taken before. what names the
// key of the call.
func (f Found) Verdict(refusal error, code problem.Code, at problem.Place, what string) error {
	if f.Repeat == Repeated {
		return nil
	}
	refused, ok := problem.As(refusal)
	if f.Repeat == KeyReused {
		now := "Runner.Status shows what the run waits for now."
		if ok && refused.Hint != "" {
			now = strings.TrimPrefix(refused.Hint, "Nothing was changed. ") // it says what is awaited instead
		}
		e := problem.New(code, "%s was used before, with another content", what).WithReason(problem.AnsweredDifferently).WithPlace(at)
		return f.told(e).WithHint("What was recorded first stands; nothing was changed.%s %s", f.said(), now)
	}
	if !ok || f.Record == nil {
		return refusal
	}
	e := *refused
	return f.told(&e).WithHint("%s", strings.TrimSpace(e.Hint+f.said()))
}

// Again returns the refusal of a call that has the content of what was recorded last, but cannot be known to be the same call.
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
	// maxRecorded is up to how many bytes of what was recorded are data of a refusal.
	maxRecorded = 1 << 10
	// maxSaid is how many bytes of it the hint has.
	maxSaid = 300
)

// said is what was recorded, in a sentence, "" if nothing was.
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

// told adds to the details of a refusal what was recorded.
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

// content is what was recorded, by the name that it has in a call, without what is secret by its name.
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
