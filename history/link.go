package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// LinkKind is the relation between a run and its origin.
type LinkKind string

// The kinds of links.
const (
	Forked  LinkKind = "fork"
	Retried LinkKind = "retry"
)

// Link records that the run To began with a copy of the records of the run From, up to one record.
type Link struct {
	From, To string
	Kind     LinkKind
	Seq      int64
	// Actor is the caller that began To, as text; "" if unknown.
	Actor string
	At    time.Time
	// Again allows a second retry of the same work. It is not stored.
	Again bool
	// Phase is the phase of To; "" if To was deleted. A batch does not set it.
	Phase Phase
}

// AlreadyRetried returns the error of a retry whose work another retry does or has done; nil if there is no such retry. related are the links
// of the Retries of From. done is the retry in the Handling of From, "" without one; it may have been deleted.
func (l *Link) AlreadyRetried(related []Link, done string) error {
	id := cmp.Or(LiveRetry(l.From, related), done)
	if id == "" {
		return nil
	}
	return problem.New(problem.AlreadyRetried, "run %q has been retried as %q, which is open or has completed", first(l.From, related), id).
		WithPlace(problem.Place{ExecutionID: l.From}).
		WithHint("Look at run %q: it does the work of run %q. Nothing was written; ForkRequest.Again begins another retry beside it.", id, l.From)
}

// Retries returns the links of all retries of a run's work: of the first run, of its retries, and so on. linksOf returns the links of one
// run; see Store.Links.
func Retries(id string, linksOf func(id string) ([]Link, error)) ([]Link, error) {
	var related []Link
	seen := map[string]bool{id: true}
	for ids := []string{id}; len(ids) > 0; ids = ids[1:] {
		links, err := linksOf(ids[0])
		if err != nil {
			return nil, err
		}
		for _, l := range links {
			if l.Kind != Retried {
				continue
			}
			for _, other := range []string{l.From, l.To} {
				if !seen[other] {
					seen[other] = true
					ids = append(ids, other)
				}
			}
			if l.From == ids[0] { // each link occurs at both of its ends
				related = append(related, l)
			}
		}
	}
	slices.SortStableFunc(related, func(a, b Link) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.To, b.To)) })
	return related, nil
}

// first returns the original run of the work.
func first(id string, related []Link) string {
	for seen := 0; seen <= len(related); seen++ {
		i := slices.IndexFunc(related, func(l Link) bool { return l.To == id })
		if i < 0 {
			break
		}
		id = related[i].From
	}
	return id
}

// LiveRetry returns the retry that does the work of a run, from the links of its Retries: a completed one, else the oldest open one; ""
// without such a retry.
func LiveRetry(id string, related []Link) string {
	open := ""
	for i := range related {
		switch l := &related[i]; {
		case l.To == id || !l.Live():
		case l.Phase == PhaseCompleted:
			return l.To
		case open == "":
			open = l.To
		}
	}
	return open
}

// EndsFork reports whether the batch ends a fork or a retry.
func (b *Batch) EndsFork() bool {
	return len(b.Records) > 0 && b.Execution.Phase.Terminal() && b.Execution.ForkedFrom.ExecutionID != ""
}

// Handles returns the runs to mark as handled after the batch has ended a run, if they have failed or were cancelled, and the retry that did
// their work. If the ended run completed, these are all other runs of the work; else the run itself, if another run has completed. related
// are the links of its Retries.
func (b *Batch) Handles(related []Link) (ids []string, retry string) {
	if b.Execution.Phase != PhaseCompleted {
		for _, l := range related {
			if l.To != b.ExecutionID && l.Phase == PhaseCompleted {
				return []string{b.ExecutionID}, l.To
			}
		}
		return nil, ""
	}
	for _, l := range related {
		for _, id := range []string{l.From, l.To} {
			if id != b.ExecutionID && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids, b.ExecutionID
}

// Live reports whether a retry prevents further retries: it is open or completed.
func (l *Link) Live() bool {
	return l.Kind == Retried && l.Phase != "" && l.Phase != PhaseFailed && l.Phase != PhaseCancelled
}
