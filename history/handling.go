package history

import (
	"cmp"
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Handling says that a run which has failed or was cancelled needs nobody any more: a retry of it has completed, or somebody has said so. Its
// subworkflows are handled with it. It is no part of the run's history.
type Handling struct {
	ExecutionID string
	// Note is what was done about it. Retry, instead, is the retry that has completed: of the run, or of another one that tried the same work.
	Note, Retry string
	// Actor is who has said so, as text; "" if that is not known.
	Actor string
	At    time.Time
}

// MaxNoteBytes bounds a note.
const MaxNoteBytes = 4096

// Check refuses a mark that no store takes.
func (h *Handling) Check() error {
	place := problem.Place{ExecutionID: h.ExecutionID}
	switch {
	case strings.TrimSpace(h.Note) == "" && h.Retry == "":
		return problem.New(problem.ValidationError, "the note is empty").WithPlace(place).WithHint("Write what was done about run %q.", h.ExecutionID)
	case len(h.Note) > MaxNoteBytes || !utf8.ValidString(h.Note):
		return problem.New(problem.ValidationError, "the note must be UTF-8 text of at most %d bytes", MaxNoteBytes).WithPlace(place).WithHint("Write less.")
	case h.At.IsZero():
		return problem.New(problem.Internal, "the time of the mark is missing").WithPlace(place)
	}
	return nil
}

// NotToHandle refuses the mark of a run in a phase that needs none; nil for one that has failed or was cancelled.
func NotToHandle(executionID string, p Phase) error {
	if p == PhaseFailed || p == PhaseCancelled {
		return nil
	}
	return problem.New(problem.ValidationError, "run %q is %s: only a run that has failed or was cancelled can be marked as handled", executionID, p).
		WithPlace(problem.Place{ExecutionID: executionID}).WithHint("Nothing was changed.")
}

// Lineage is how a run stands to others, beside its history.
type Lineage struct {
	// RetryOf is the run that it is a retry of.
	RetryOf string
	// Retries are the retries of it, the oldest first.
	Retries []Link
	// Live is the run that does or has done the work of a run that has failed: a retry of it, or of a run that tried the same work. Another
	// one has to be asked for.
	Live string
	// Handled is set if it needs nobody any more.
	Handled *Handling
}

// AddLineage sets the Lineage of runs, which takes no time for those that have not failed, were not cancelled and were not forked.
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
