package replay

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Fork makes the first records of a run that begins with the past of another one.
type Fork struct {
	// From is the run to fork, To the new one. Seq is the last record of From that is asked for.
	From, To string
	Seq      int64
	// Program is what the new run follows. What is taken over must be what it would have led to.
	Program   *definition.Program
	MaxVisits int
	// Now is when the new run's past ends, in whole milliseconds.
	Now time.Time
}

// Past returns the first records of the new run and its machine behind them, made of all records of the other run. Times move
// along with Now. NONDETERMINISM_DETECTED if the past is not what the program leads to.
func (f *Fork) Past(records []history.Record) ([]history.Record, *machine.Machine, error) {
	n := WithoutFailure(records, WithoutEnd(records, int(f.Seq)))
	// Proved is the past as it was, at its own times: a definition may ask for the time.
	if _, err := Prove(f.Program, f.From, records[:n], InputOf(records), f.MaxVisits, records[n-1].CreatedAt); err != nil {
		return nil, nil, err
	}
	past, err := f.rewritten(records, n)
	if err != nil {
		return nil, nil, err
	}
	m, _, moved, err := Run(f.Program, f.To, past, nil, f.MaxVisits, f.Now)
	if err != nil {
		return nil, nil, err
	}
	for i := range moved {
		moved[i].SetDerived(&past[moved[i].Seq-1].Payload)
	}
	return past, m, nil
}

// rewritten returns the first n records of the other run, under the new id, moved in time.
func (f *Fork) rewritten(all []history.Record, n int) ([]history.Record, error) {
	out := make([]history.Record, n)
	shift := f.Now.Sub(all[n-1].CreatedAt)
	for i := range out {
		r := all[i]
		r.Raw, r.Foreign = nil, false
		r.CreatedAt = r.CreatedAt.Add(shift)
		f.rewrite(&r.Payload, r.Name, shift)
		out[i] = r
	}
	p := &out[0].Payload
	if out[0].Name != history.ExecutionStarted {
		return nil, problem.New(problem.HistoryCorrupt, "the first record is %s", out[0].Name).WithPlace(problem.Place{ExecutionID: f.From})
	}
	input := InputOf(all)
	if p.Input == nil && input != nil && !slices.ContainsFunc(out, isState) {
		p.Input = maps.Clone(input) // the first state, which is the input, is not among what is taken over
	}
	return withoutOpenTasks(out), nil
}

// rewrite makes a payload the new run's own. Payloads share values with the records read, which are nobody else's.
func (f *Fork) rewrite(p *history.Payload, name history.Name, shift time.Duration) {
	for _, id := range []*string{&p.ChildExecutionID, &p.ParentExecutionID, &p.IdempotencyKey, &p.Correlation} {
		*id = f.own(*id)
	}
	for _, at := range []*time.Time{&p.DueAt, &p.RetryAt} {
		if !at.IsZero() && p.TimerKind != "until" { // an instant stays what it is
			*at = at.Add(shift)
		}
	}
	if p.DefinitionHash != "" {
		p.DefinitionHash = f.Program.Hash
	}
	if p.WorkflowVersion != "" {
		p.WorkflowVersion = f.Program.Version
	}
	if name == history.ExecutionStarted {
		p.WorkflowName, p.WorkflowVersion = f.Program.Name, f.Program.Version
		p.ParentExecutionID, p.Depth = "", 0 // nobody waits for it
		p.ForkedFrom = history.ForkOrigin{ExecutionID: f.From, Seq: f.Seq}
	}
}

// own returns an id that begins with the other run's as the new run's.
func (f *Fork) own(id string) string {
	rest, ok := strings.CutPrefix(id, f.From)
	if !ok || rest != "" && rest[0] != ':' {
		return id
	}
	return f.To + rest
}

// withoutOpenTasks leaves out what is recorded of tasks at remote agents whose attempts had not ended. Such a task is the
// other run's: answered from here it would be answered there, and a cancel of the new run would end it for both.
func withoutOpenTasks(records []history.Record) []history.Record {
	type visit struct {
		node string
		n    int
	}
	ended := map[visit]bool{}
	open := make([]bool, len(records))
	for i, r := range slices.Backward(records) {
		at := visit{r.Payload.NodeID, max(r.Payload.Visit, 1)}
		switch r.Name {
		case history.ActivityCompleted, history.ActivityFailed:
			ended[at] = true
		case history.ActivityRequested, history.InterruptRaised, history.InterruptResumed:
			open[i] = r.Payload.ExternalTask != "" && !ended[at]
		}
	}
	kept := make([]history.Record, 0, len(records))
	for i, r := range records {
		if open[i] {
			continue
		}
		gone := int64(i - len(kept)) // records left out before this one
		r.Seq -= gone
		if r.Name == history.CheckpointWritten {
			r.Payload.LastAppliedEventSeq -= gone
		}
		kept = append(kept, r)
	}
	return kept
}
