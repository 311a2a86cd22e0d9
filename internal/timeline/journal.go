package timeline

import (
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Journal has the entries that the executor of an attempt recorded.
type Journal struct {
	// Entries leave out the wake-ups of an agent and the answers to its questions, which stand with the questions. Count has them all.
	Entries []*Entry
	Count   int
	// Totals are the newest sums, nil without any.
	Totals Usage
	// Work follows the agent, nil for another executor.
	Work *Work
	// newest names the newest entry that is not a wake-up.
	newest string
	micros int64
}

// Entry is a journal entry.
type Entry struct {
	Seq       int64
	N         int
	Key, Kind string
	At        time.Time
	// Text is the entry in words.
	Text string
	// Words describe the entry of an agent. CostMicros is the cost of the entry, in millionths of a dollar.
	Words      *Words
	CostMicros int64
	// Calls are those that a question asks to approve, without their arguments. Answer is the answer to a question, which came after Waited.
	Calls  []agentsteps.Ask
	Answer string
	Waited time.Duration
}

// entry takes a journal entry: the attempt works on, asks, or rests until a time.
func (t *Timeline) entry(v *Visit, rec *history.Record, place *Place) {
	p, at := &rec.Payload, rec.CreatedAt
	a := v.attempt
	if a == nil {
		a = v.request(rec)
	}
	if p.AgentID != "" {
		a.AgentID = p.AgentID
	}
	place.Attempt, place.Entry = a, t.journal(&a.Journal, rec)
	switch {
	case rec.Name == history.InterruptRaised:
		v.Text = t.short(p.Prompt)
		place.Wait = v.wait(&Wait{Kind: Asking, Key: place.Entry.Key}, rec)
	case !p.DueAt.IsZero():
		place.Wait = v.wait(&Wait{Kind: Resting, Due: p.DueAt}, rec)
	default:
		if rec.Name == history.InterruptResumed {
			place.Wait = t.answered(v, rec)
		} else {
			place.Wait = v.endWait(at)
		}
		if v.Ended.IsZero() {
			v.State, v.Text = Working, ""
		}
	}
}

// journal takes an entry.
func (t *Timeline) journal(j *Journal, rec *history.Record) *Entry {
	p := &rec.Payload
	e := &Entry{Seq: rec.Seq, At: rec.CreatedAt}
	e.Key, e.Kind, e.N, _ = p.Step()
	if e.Kind != machine.StepWoken {
		j.newest = t.short(e.Kind + " " + e.Key)
	}
	if totals, ok := p.AgentStep["totals"].(map[string]any); ok {
		j.Totals = totals
	}
	if j.Work == nil {
		j.Work = &Work{}
	}
	j.Work.take(rec)
	j.Count = e.N
	words, ok := WordsOf(rec)
	if !ok || len(j.Entries) > 0 && j.Entries[0].Words == nil { // an executor of another kind may name its entries as agents do
		e.Text = t.about(rec)
		j.Entries = append(j.Entries, e)
		return e
	}
	cost := words.CostMicros
	words.Text = t.short(words.Text)
	e.Text, e.Words = words.Text, &words
	switch e.Kind {
	case machine.StepWoken:
		return e
	case machine.StepQuestion:
		for _, c := range agentsteps.Approval(p.AgentStep) {
			e.Calls = append(e.Calls, agentsteps.Ask{Key: c.Key, Tool: c.Tool})
		}
	case machine.StepAnswer:
		if q := j.question(e.Key); q != nil {
			q.Answer, q.Waited = t.short(AnswerText(q.Calls, p.SignalPayload, p.AnswerExpired())), rec.CreatedAt.Sub(q.At)
			return e
		}
	}
	if words.Priced {
		e.CostMicros, j.micros = max(0, cost-j.micros), cost
	}
	j.Entries = append(j.Entries, e)
	return e
}

// question returns the newest question with a key, or nil.
func (j *Journal) question(key string) *Entry {
	for _, e := range slices.Backward(j.Entries) {
		if e.Key == key && e.Kind == machine.StepQuestion {
			return e
		}
	}
	return nil
}

// about puts the entry of an executor that is not an agent into words.
func (t *Timeline) about(rec *history.Record) string {
	p := &rec.Payload
	e, _, _ := machine.StepOf(rec)
	text := ""
	switch e.Kind {
	case machine.StepQuestion:
		text = p.Prompt
		if q := machine.QuestionOf(rec); q != nil && len(q.Body) > 0 {
			text += " " + string(jsonvalue.Canonical(q.Body))
		}
	case machine.StepAnswer:
		text = string(jsonvalue.Canonical(p.SignalPayload))
		if p.AnswerExpired() {
			text = "no answer in time: " + text
		}
	case machine.StepRest:
		text = "until " + p.DueAt.UTC().Format("2006-01-02 15:04:05Z")
	default:
		if len(e.Body) > 0 {
			text = string(jsonvalue.Canonical(e.Body))
		}
	}
	return t.short(strings.Join(strings.Fields(text), " "))
}
