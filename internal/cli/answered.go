package cli

import (
	"context"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

const (
	// maxAnswered is how many answers the status of a run names, the newest ones.
	maxAnswered = 3
	// answeredWithin limits the search for answers to a run's newest records.
	answeredWithin = 2000
)

// answered is an answer to a question of a run, with its actor.
type answered struct {
	node string
	by   *history.Actor
	at   time.Time
}

// answersOf returns the newest answers to questions of a run, the oldest first.
func (s *session) answersOf(ctx context.Context, run *history.Execution) (list []answered, err error) {
	const page = 256
	unsigned := false // the newest of list is from the record after, which has no actor
	for last := run.Seq; last > max(run.Seq-answeredWithin, 0); last -= page {
		from := max(last-page+1, 1)
		records, err := s.store.Read(ctx, run.ID, from, int(last-from+1))
		if err != nil {
			return nil, err
		}
		for i := len(records) - 1; i >= 0; i-- {
			rec := &records[i]
			if unsigned && rec.Kind == history.Command {
				list[len(list)-1].by = rec.Payload.Actor
			}
			if unsigned = false; len(list) == maxAnswered {
				slices.Reverse(list)
				return list, nil
			}
			if rec.Name == history.InterruptResumed && !rec.Payload.AnswerExpired() {
				list = append(list, answered{rec.Payload.NodeID, rec.Payload.Actor, rec.CreatedAt})
				unsigned = rec.Payload.Actor == nil
			}
		}
	}
	slices.Reverse(list)
	return list, nil
}

// text is the answer in a line of the status.
func (a answered) text(now time.Time) string {
	text := plainCell(a.node)
	if a.by != nil {
		text += " by " + actorText(a.by)
	}
	return text + ", " + age(a.at, now) + " ago"
}
