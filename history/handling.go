package history

import (
	"cmp"
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Handling marks a failed or cancelled run as handled: a retry completed, or a user marked it. The mark covers the run's subworkflows. It is
// not part of the run's history.
type Handling struct {
	ExecutionID string
	// Note describes how the run was handled. Retry is set instead if a retry completed: a retry of this run or of another run of the same
	// work.
	Note, Retry string
	// Actor is the user or client that set the mark, as text; "" if unknown.
	Actor string
	At    time.Time
}

// MaxNoteBytes is the maximum length of a note.
const MaxNoteBytes = 4096

// Check returns an error if the mark is invalid.
func (h *Handling) Check() error {
	place := problem.Place{ExecutionID: h.ExecutionID}
	switch {
	case strings.TrimSpace(h.Note) == "" && h.Retry == "":
		return problem.New(problem.ValidationError, "the note is empty").WithPlace(place).WithHint("Describe how run %q was handled.", h.ExecutionID)
	case len(h.Note) > MaxNoteBytes || !utf8.ValidString(h.Note):
		return problem.New(problem.ValidationError, "the note must be UTF-8 text of at most %d bytes", MaxNoteBytes).WithPlace(place).WithHint("Write less.")
	case h.At.IsZero():
		return problem.New(problem.Internal, "the time of the mark is missing").WithPlace(place)
	}
	return nil
}

// NotToHandle returns the error of marking a run in a phase other than failed and cancelled; nil for those two.
func NotToHandle(executionID string, p Phase) error {
	if p == PhaseFailed || p == PhaseCancelled {
		return nil
	}
	return problem.New(problem.ValidationError, "run %q is %s: only a run that has failed or was cancelled can be marked as handled", executionID, p).
		WithPlace(problem.Place{ExecutionID: executionID}).WithHint("Nothing was changed.")
}

// Lineage holds a run's relations to other runs, which its history does not contain.
type Lineage struct {
	// RetryOf is the run that this run retries.
	RetryOf string
	// Retries are the retries of this run, oldest first.
	Retries []Link
	// Live is the open or completed retry that does the work of a failed run: a retry of it, or of another run of the same work. While it is
	// set, another retry needs an explicit request.
	Live string
	// Handled is set if the run is handled.
	Handled *Handling
}

// AddLineage sets the Lineage of runs. It costs nothing for runs that are not failed, cancelled or forked.
func AddLineage(ctx context.Context, s Store, runs ...*Execution) error {
	var ended []string
	for _, e := range runs {
		if e.Phase == PhaseFailed || e.Phase == PhaseCancelled {
			ended = append(ended, e.ID)
		} else if e.ForkedFrom.ExecutionID == "" {
			continue
		}
		links, err := s.Links(ctx, e.ID)
		if err != nil {
			return err
		}
		for _, l := range links {
			switch {
			case l.To == e.ID && l.Kind == Retried:
				e.Lineage.RetryOf = l.From
			case l.From == e.ID && l.Kind == Retried:
				e.Lineage.Retries = append(e.Lineage.Retries, l)
			}
		}
		if len(e.Lineage.Retries) == 0 && e.Lineage.RetryOf == "" || !e.Phase.Terminal() || e.Phase == PhaseCompleted {
			continue
		}
		related, err := Retries(e.ID, func(id string) ([]Link, error) { return s.Links(ctx, id) })
		if err != nil {
			return err
		}
		e.Lineage.Live = LiveRetry(e.ID, related)
	}
	if len(ended) == 0 {
		return nil
	}
	handled, err := s.Handled(ctx, ended...)
	if err != nil {
		return err
	}
	for _, e := range runs {
		if h, ok := handled[e.ID]; ok {
			e.Lineage.Handled = &h
			if h.ExecutionID == e.ID {
				e.Lineage.Live = cmp.Or(e.Lineage.Live, h.Retry)
			}
		}
	}
	return nil
}
