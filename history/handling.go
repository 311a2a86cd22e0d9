package history

import (
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
	// Note is what was done about it. Retry, instead, is the retry that has completed: of the run, or of a retry of it.
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
	// Handled is set if it needs nobody any more.
	Handled *Handling
}

// Live is the retry that is open or has completed, "" if there is none: another one has to be asked for.
func (l *Lineage) Live() string {
	for i := range l.Retries {
		if l.Retries[i].Live() {
			return l.Retries[i].To
		}
	}
	return ""
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
		}
	}
	return nil
}
