package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// LinkKind says how a run has come from another one.
type LinkKind string

// The kinds of links.
const (
	Forked  LinkKind = "fork"
	Retried LinkKind = "retry"
)

// Link says that a run, To, has begun with the past of another one, From, up to a record.
type Link struct {
	From, To string
	Kind     LinkKind
	Seq      int64
	// Actor is who began it, as text; "" if that is not known.
	Actor string
	At    time.Time
	// Again lets a batch begin a retry beside others. It is not stored.
	Again bool
	// Phase is that of To; "" if it has been deleted. A batch does not set it.
	Phase Phase
}

// AlreadyRetried refuses a retry whose work another one is doing or has done; nil if none is. related are the links of the Retries of From, and
// done the retry by which From is marked as handled, if it is: that may have been deleted since.
func (l *Link) AlreadyRetried(related []Link, done string) error {
	id := cmp.Or(LiveRetry(l.From, related), done)
	if id == "" {
		return nil
	}
	return problem.New(problem.AlreadyRetried, "run %q has been retried as %q, which is open or has completed", first(l.From, related), id).
		WithPlace(problem.Place{ExecutionID: l.From}).
		WithHint("Look at run %q: it does the work of run %q. Nothing was written; ForkRequest.Again begins another retry beside it.", id, l.From)
}

// Retries returns the links of all retries of the work that a run does: of the run that was begun first, of the retries of that, and so on.
// linksOf are those of one run; see Store.Links.
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
			if l.From == ids[0] { // each link is one of both its ends
				related = append(related, l)
			}
		}
	}
	slices.SortStableFunc(related, func(a, b Link) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.To, b.To)) })
	return related, nil
}

// first is the run whose work the others try again.
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

// LiveRetry is the run that does the work of a run, by the links of its Retries: one that has completed, else the oldest that is open; "" if
// there is none.
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

// EndsFork reports whether a run that has begun with the past of another one ends with the batch.
func (b *Batch) EndsFork() bool {
	return len(b.Records) > 0 && b.Execution.Phase.Terminal() && b.Execution.ForkedFrom.ExecutionID != ""
}

// Handles returns the runs that need nobody any more once the batch has ended a run, if they have failed or were cancelled, and the retry that
// has done their work: the other runs of the work if it has completed, else the run itself if another one has. related are the links of its
// Retries.
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

// Live reports whether a retry in a phase keeps others from being begun.
func (l *Link) Live() bool {
	return l.Kind == Retried && l.Phase != "" && l.Phase != PhaseFailed && l.Phase != PhaseCancelled
}
