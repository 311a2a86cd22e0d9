package work

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// journaled performs an attempt whose executor keeps a journal, which is passed to work. The caller records the result.
func (p *Performer) journaled(ctx context.Context, executionID string, a *Attempt, recorded *machine.Journal,
	work func(context.Context, activities.Journal) (activities.End, error)) machine.Input {
	j := &journal{p: p, executionID: executionID, attempt: a, begun: a.Repeated()}
	if recorded != nil {
		j.count, j.first = recorded.Count, recorded.First
	}
	end, err := work(ctx, j)
	steps, bad := j.plain(end.Steps)
	if err == nil {
		err = cmp.Or(bad, fits(end))
	}
	out := machine.Outcome{}
	switch {
	case err != nil:
		out = failedOutcome(ctx, err)
	case end.Result != nil:
		out = p.outcome(end.Result.Output, usageOf(end.Result))
	default:
		rest := machine.StepsRecorded{Key: a.Key, Index: j.recorded(), Steps: steps, Until: end.Until}
		if rest.Question, err = j.question(end.Question); err == nil {
			return rest
		}
		out = failedOutcome(ctx, err)
	}
	out.Key, out.Steps, out.Index = a.Key, steps, j.recorded()
	return out
}

// fits reports whether exactly one field of an end is set.
func fits(end activities.End) error {
	n := 0
	for _, set := range []bool{end.Result != nil, end.Question != nil, !end.Until.IsZero()} {
		if set {
			n++
		}
	}
	if n != 1 {
		return activities.Fail(problem.JournalInvalid, "the executor must return exactly one of result, question and time, and returned %d", n)
	}
	return nil
}

// journal is the journal of an attempt that this process performs.
type journal struct {
	p           *Performer
	executionID string
	attempt     *Attempt
	begun       bool

	mu    sync.Mutex
	count int
	first int64
	// next are the entries for the next commit; failed is the error that ended recording.
	next       *stepBatch
	committing bool
	failed     error
}

// stepBatch holds the entries of calls that share a commit.
type stepBatch struct {
	steps []machine.Step
	done  chan struct{}
	err   error
}

// Begun implements activities.Journal.
func (j *journal) Begun() bool { return j.begun }

func (j *journal) recorded() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.count
}

// Steps implements activities.Journal.
func (j *journal) Steps(ctx context.Context) ([]activities.Step, error) {
	j.mu.Lock()
	count, first := j.count, j.first
	j.mu.Unlock()
	if count == 0 {
		return nil, nil
	}
	steps, err := j.p.Runs.Recorded(ctx, j.executionID, j.attempt, first, 0)
	if err == nil && len(steps) < count {
		err = problem.New(problem.HistoryCorrupt, "attempt %s has %d steps, and %d were recorded", j.attempt.Key, len(steps), count).
			WithPlace(problem.Place{ExecutionID: j.executionID, NodeID: j.attempt.Effect.Base().NodeID})
	}
	return steps, err
}

// Step implements activities.Journal.
func (j *journal) Step(ctx context.Context, n int) (activities.Step, error) {
	j.mu.Lock()
	count, first := j.count, j.first
	j.mu.Unlock()
	if n >= 1 && n <= count {
		steps, err := j.p.Runs.Recorded(ctx, j.executionID, j.attempt, first, n)
		if err != nil {
			return activities.Step{}, err
		}
		if len(steps) == 1 {
			return steps[0], nil
		}
	}
	return activities.Step{}, activities.Fail(problem.JournalInvalid, "attempt %s has %d steps, and no step %d", j.attempt.Key, count, n)
}

// Room implements activities.Roomed.
func (j *journal) Room(ctx context.Context) (int64, error) {
	return j.p.Runs.Room(ctx, j.executionID)
}

// Before implements activities.Earlier.
func (j *journal) Before(ctx context.Context) (e activities.EarlierAttempt, ok bool, err error) {
	of := *j.attempt.Effect.Base()
	e.Code, e.Message = of.LastCode, of.LastError
	for of.Attempt--; of.Attempt > 0; of.Attempt-- {
		earlier := &Attempt{Key: j.attempt.Key, Effect: &machine.ActivityEffect{EffectBase: of}}
		e.Steps, err = j.p.Runs.Recorded(ctx, j.executionID, earlier, 1, 0)
		for i := 0; i < len(e.Steps) && err == nil; i++ {
			if e.Steps[i].Kind == activities.StepPiece { // the caller needs them whole
				var whole []activities.Step
				whole, err = j.p.Runs.Recorded(ctx, j.executionID, earlier, 1, i+1)
				if len(whole) == 1 {
					e.Steps[i] = whole[0]
				}
			}
		}
		if err != nil || len(e.Steps) > 0 {
			e.Attempt = fmt.Sprintf("%s#%d.%d", of.NodeID, of.Visit, of.Attempt)
			return e, err == nil, err
		}
	}
	return e, false, nil
}

// Record implements activities.Journal. Calls during a commit share the next one, which the first of them makes.
func (j *journal) Record(ctx context.Context, steps ...activities.Step) error {
	j.attempt.pulse.beat()
	defer j.attempt.pulse.beat()
	plain, err := j.plain(steps)
	if err != nil || len(plain) == 0 {
		return err
	}
	j.mu.Lock()
	if j.failed != nil {
		defer j.mu.Unlock()
		return j.failed
	}
	if j.next == nil {
		j.next = &stepBatch{done: make(chan struct{})}
	}
	b := j.next
	b.steps = append(b.steps, plain...)
	if j.committing {
		j.mu.Unlock()
		<-b.done
		return b.err
	}
	j.committing = true
	for j.next != nil {
		j.commit()
	}
	j.committing = false
	j.mu.Unlock()
	return b.err
}

// commit records the waiting entries. The caller holds the lock, which is released during the commit.
func (j *journal) commit() {
	b := j.next
	j.next = nil
	if b.err = j.failed; b.err == nil {
		s := machine.StepsRecorded{Key: j.attempt.Key, Index: j.count, Steps: b.steps}
		j.mu.Unlock()
		err := j.p.Runs.Record(j.executionID, j.attempt, s)
		j.mu.Lock()
		if b.err = err; err != nil {
			j.failed = err
		} else {
			j.count += len(b.steps)
		}
	}
	close(b.done)
}

// plain returns entries in their recorded form.
func (j *journal) plain(steps []activities.Step) ([]machine.Step, error) {
	plain := make([]machine.Step, 0, len(steps))
	for _, s := range steps {
		body, err := plainMember(s.Body, "the body of step", s.Key, activities.MaxStepBytes)
		if err != nil {
			return nil, err
		}
		totals, err := plainMember(s.Totals, "the totals of step", s.Key, maxTotalsBytes)
		if err != nil {
			return nil, err
		}
		plain = append(plain, machine.Step{Key: s.Key, Kind: s.Kind, Body: body, Totals: totals})
	}
	return plain, nil
}

// maxTotalsBytes bounds the totals of an entry: they are kept in memory and in positions.
const maxTotalsBytes = 4 << 10

func (j *journal) question(q *activities.Question) (*machine.Question, error) {
	if q == nil {
		return nil, nil
	}
	out := &machine.Question{Key: q.Key, Prompt: problem.ClipRunes(q.Prompt, maxTaskPrompt), Expires: q.Expires}
	for _, m := range []struct {
		name string
		of   map[string]any
		into *map[string]any
	}{{"the body of question", q.Body, &out.Body}, {"the schema of question", q.Schema, &out.Schema}, {"the default answer of question", q.Otherwise, &out.Otherwise}} {
		var err error
		if *m.into, err = plainMember(m.of, m.name, q.Key, activities.MaxStepBytes); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// plainMember returns an object in its recorded form.
func plainMember(m map[string]any, what, key string, most int) (map[string]any, error) {
	if m == nil {
		return nil, nil
	}
	v, err := jsonvalue.Normalize(m)
	if err == nil && jsonvalue.Size(v, most) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	if err != nil {
		return nil, activities.Fail(problem.JournalInvalid, "%s %q cannot be recorded: %v", what, key, err)
	}
	object, _ := v.(map[string]any)
	return object, nil
}

var (
	_ activities.Journal = (*journal)(nil)
	_ activities.Earlier = (*journal)(nil)
	_ activities.Roomed  = (*journal)(nil)
)
