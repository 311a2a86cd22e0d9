package graph

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// HandleRequest marks a run that has failed or was cancelled as handled.
type HandleRequest struct {
	ExecutionID string
	// Note says what was done about it, in place of an earlier note.
	Note string
	// Undo, instead, takes the mark off: the run needs somebody again.
	Undo bool
}

// Handle says of a run that has failed or was cancelled that it needs nobody any more: lists of what is unhandled (history.ListQuery.Unhandled)
// leave it out, with its subworkflows. A run of which a retry has completed is marked without it. The mark is kept beside the history, with the
// time and the actor. EXECUTION_NOT_FOUND; VALIDATION_ERROR for a run in another phase, a blank note or a long one.
func (r *Runner) Handle(ctx context.Context, req HandleRequest) error {
	if err := r.enterToWrite(ctx); err != nil {
		return err
	}
	defer r.tasks.Done()
	var err error
	if req.Undo {
		err = r.store.Unhandle(ctx, req.ExecutionID)
	} else {
		h := history.Handling{ExecutionID: req.ExecutionID, Note: req.Note, At: r.now().UTC().Truncate(time.Millisecond)}
		if a := run.ActorOf(ctx); a != nil {
			h.Actor = a.String()
		}
		err = r.store.Handle(ctx, h)
	}
	if err != nil {
		return admit.NotFoundAs(err, problem.ExecutionNotFound, req.ExecutionID)
	}
	return nil
}
