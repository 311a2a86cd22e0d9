package temporal

import (
	"context"
	"encoding/json"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// The journal of an attempt has two parts. The entries that the workflow knows are records of the run. Those that follow are in the side store,
// so that they are durable before their effects, until the activity ends: its result then holds them, and the workflow records them. A worker
// that is lost in between leaves its entries to the next one. The key in the side store contains the number of entries that the workflow knew,
// so each activity has a part of its own, and the number of its entries is the fence against a worker that was only thought to be lost.

// SideStore keeps beside Temporal the values that are too large or too many for event histories. All workers and engines of a namespace share
// one.
type SideStore interface {
	// PutBlob stores a value under its SHA-256 in hex. GetBlob returns it.
	PutBlob(ctx context.Context, hash string, value []byte) error
	GetBlob(ctx context.Context, hash string) ([]byte, error)
	// AppendJournal appends entries to the journal of an attempt, whose number of entries must be count before. Otherwise another worker has
	// written, and the error is HISTORY_CONFLICT. Journal returns the entries.
	AppendJournal(ctx context.Context, attempt string, count int, entries [][]byte) error
	Journal(ctx context.Context, attempt string) ([][]byte, error)
	Close() error
}

// entry is a journal entry in the side store.
type entry struct {
	Key    string         `json:"key"`
	Kind   string         `json:"kind"`
	Body   map[string]any `json:"body,omitempty"`
	Totals map[string]any `json:"totals,omitempty"`
	At     time.Time      `json:"at"`
}

func (e *entry) step() activities.Step {
	return activities.Step{Key: e.Key, Kind: e.Kind, Body: e.Body, Totals: e.Totals, At: e.At}
}

// attemptRuns is the run of an attempt, as work uses it.
type attemptRuns struct {
	*performer
	attempt *attempt
	beat    func(details map[string]any)
	// ctx is that of the activity, base the attempt. known is the number of journal entries that the workflow knows.
	ctx   context.Context
	base  *machine.EffectBase
	known int
	// entries are those in the side store; begun reports that an earlier worker has written some of them.
	entries []entry
	begun   bool
	// unread is the error of records that this worker cannot read: the attempt has not failed, and another worker may perform it.
	unread error
}

// load reads the entries that an earlier worker has recorded of the attempt, and adds them to the journal of the effect.
func (r *attemptRuns) load(ctx context.Context, effect machine.Effect) error {
	r.ctx, r.base = ctx, effect.Base()
	journal := journalOf(effect)
	if journal == nil || r.side == nil {
		return nil
	}
	if *journal != nil {
		r.known = (*journal).Count
	}
	stored, err := r.side.Journal(ctx, r.key())
	if err != nil {
		return err
	}
	for _, text := range stored {
		var e entry
		if err := json.Unmarshal(text, &e); err != nil {
			return problem.New(problem.HistoryCorrupt, "the journal of attempt %s in the side store cannot be read", r.key()).WithCause(err)
		}
		r.entries = append(r.entries, e)
	}
	if len(r.entries) > 0 {
		r.begun = true
		all := machine.Journal{First: 1}
		if *journal != nil {
			all = **journal
		}
		all.Count += len(r.entries)
		*journal = &all
	}
	return nil
}

// journalOf returns the journal of an effect, nil for one that keeps no journal.
func journalOf(effect machine.Effect) **machine.Journal {
	switch e := effect.(type) {
	case *machine.ActivityEffect:
		return &e.Journal
	case *machine.DelegateEffect:
		return &e.Journal
	}
	return nil
}

// key identifies the journal in the side store.
func (r *attemptRuns) key() string {
	return problem.Format("%s@%d", view.Key(r.attempt.ExecutionID, r.base.EffectKey), r.known)
}

// complete adds the entries of the side store to the result of an attempt.
func (r *attemptRuns) complete(in machine.Input) machine.Input {
	if len(r.entries) == 0 {
		return in
	}
	var all []machine.Step
	for _, e := range r.entries {
		all = append(all, machine.Step{Key: e.Key, Kind: e.Kind, Body: e.Body, Totals: e.Totals})
	}
	switch in := in.(type) {
	case machine.Outcome:
		in.Steps, in.Index = append(all, in.Steps...), r.known
		return in
	case machine.StepsRecorded:
		in.Steps, in.Index = append(all, in.Steps...), r.known
		return in
	}
	return in
}

// Record implements work.Runs.
func (r *attemptRuns) Record(_ string, _ *work.Attempt, s machine.StepsRecorded) error {
	if r.side == nil {
		return errNoJournal
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	var more []entry
	var texts [][]byte
	for _, step := range s.Steps {
		if err := machine.CheckStep(&step); err != nil {
			return err
		}
		e := entry{Key: step.Key, Kind: step.Kind, Body: step.Body, Totals: step.Totals, At: now}
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		more, texts = append(more, e), append(texts, text)
	}
	if err := r.side.AppendJournal(work.Detached(r.ctx), r.key(), len(r.entries), texts); err != nil {
		return err
	}
	r.entries = append(r.entries, more...)
	return nil
}

// Recorded implements work.Runs.
func (r *attemptRuns) Recorded(ctx context.Context, id string, a *work.Attempt, first int64, n int) ([]activities.Step, error) {
	if r.side == nil {
		return nil, errNoJournal
	}
	of := a.Effect.Base()
	own := of.Visit == r.base.Visit && of.Attempt == r.base.Attempt
	if own && n > r.known {
		if n -= r.known; n > len(r.entries) {
			return nil, nil
		}
		return []activities.Step{r.entries[n-1].step()}, nil
	}
	var steps []activities.Step
	if r.known > 0 || !own {
		var err error
		if steps, err = run.RecordedSteps(ctx, r.past, id, of, first, n); err != nil {
			r.unread = err
		}
		if err != nil || n > 0 {
			return steps, err
		}
	}
	if own {
		for i := range r.entries {
			s := r.entries[i].step()
			if s.Kind == activities.StepPiece {
				s.Body = nil
			}
			steps = append(steps, s)
		}
	}
	return steps, nil
}

// Room implements work.Runs.
func (r *attemptRuns) Room(ctx context.Context, id string) (int64, error) {
	if r.past == nil {
		return defaultMaxBytes, nil
	}
	x, err := r.past.Execution(ctx, id)
	return max(r.maxRun-x.Bytes, 0), err
}

// KeepsTasks implements work.Runs.
func (r *attemptRuns) KeepsTasks(context.Context, string) (bool, error) { return false, nil }

// Silent does nothing: the activity ends with its executor.
func (r *attemptRuns) Silent(string, *work.Attempt, machine.Input) {}

// Alive implements work.Runs.
func (r *attemptRuns) Alive(h work.Heartbeat) {
	if r.beat != nil {
		r.beat(h.Details)
	}
}

// reader reads the records of runs.
type reader interface {
	Execution(ctx context.Context, id string) (history.Execution, error)
	Read(ctx context.Context, id string, from int64, limit int) ([]history.Record, error)
}
