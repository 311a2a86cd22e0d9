package graph

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// HandleRequest marks a failed or cancelled run as handled.
type HandleRequest struct {
	ExecutionID string
	// Note describes how it was handled, and replaces an earlier note.
	Note string
	// Undo removes the mark instead.
	Undo bool
}

// Handle marks a failed or cancelled run as handled: lists of unhandled runs (history.ListQuery.Unhandled) leave it and its subworkflows out.
// A run with a completed retry is marked without it. The mark is stored beside the history, with the time and the actor. Errors:
// EXECUTION_NOT_FOUND; VALIDATION_ERROR for a run in another phase and for a blank or long note.
func (r *Runner) Handle(ctx context.Context, req HandleRequest) error {
	if err := r.enterToWrite(ctx); err != nil {
		return err
	}
	defer r.p.Leave()
	var err error
	if req.Undo {
		err = r.p.Store.Unhandle(ctx, req.ExecutionID)
	} else {
		h := history.Handling{ExecutionID: req.ExecutionID, Note: req.Note, At: r.p.Now().UTC().Truncate(time.Millisecond)}
		if a := run.ActorOf(ctx); a != nil {
			h.Actor = a.String()
		}
		err = r.p.Store.Handle(ctx, h)
	}
	if err != nil {
		return admit.NotFoundAs(err, problem.ExecutionNotFound, req.ExecutionID)
	}
	return nil
}
