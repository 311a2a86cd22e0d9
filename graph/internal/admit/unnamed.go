package admit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// An answer without an interrupt's id was made for one question. When it arrives, the run may ask another: the answer was sent twice, or
// came too late. So it is accepted only if it can be for one question alone.

// Unnamed is an answer without an interrupt's id. A value serves one search.
type Unnamed struct {
	Payload map[string]any
	// Actor is the caller, nil if unknown.
	Actor *history.Actor
	// Overtaken reports that another answer was recorded while this one was on its way: this one was for the same question.
	Overtaken bool
	// Came is the arrival of the answer, if other processes may have recorded one since; Now is the time of the search.
	Came, Now time.Time

	open   []openQuestion
	runs   []string // the histories to search
	last   pastAnswer
	own    pastAnswer // the actor's
	lapses []lapse
}

type openQuestion struct {
	executionID, id, node, prompt string
	visit                         int
}

// pastAnswer is the newest answer, or the newest one of an actor.
type pastAnswer struct {
	at    time.Time
	same  bool
	found Found
}

// take keeps the newer answer. Of two answers of the same time it keeps the one with the same content.
func (a *pastAnswer) take(b pastAnswer) {
	if b.at.After(a.at) || b.at.Equal(a.at) && b.same {
		*a = b
	}
}

// overtaken reports whether another process has recorded an answer since this one came. A future answer does not count: a clock was set.
func (u *Unnamed) overtaken() bool {
	return !u.Came.IsZero() && u.last.at.After(u.Came) && !u.last.at.After(u.Now)
}

// question returns the id of the answered question.
func (a *pastAnswer) question() string {
	p := &a.found.Record.Payload
	if strings.Contains(p.IdempotencyKey, "#") { // an agent's question
		return p.IdempotencyKey
	}
	return view.Key(a.found.run, fmt.Sprintf("%s#%d", p.NodeID, max(p.Visit, 1)))
}

// lapse is a question that ended unanswered after the newest answer of its run.
type lapse struct {
	at   time.Time
	node string
}

// Waits adds a wait of a run, or of a subworkflow below it. The search must follow all waits, so that it finds an answer recorded in
// between.
func (u *Unnamed) Waits(id string, w machine.Wait) {
	switch w.Kind {
	case machine.WaitInterrupt:
		prompt := w.Question
		if prompt == "" {
			prompt = w.Prompt
		}
		u.open = append(u.open, openQuestion{id, view.Key(id, w.Key), w.NodeID, prompt, w.Visit})
	case machine.WaitChild:
		u.runs = append(u.runs, w.ChildExecutionID)
	}
}

// maxAnswerRuns bounds the runs searched. With more runs, the meaning of an answer without an id is unknown.
const maxAnswerRuns = 4096

// Asked reports whether the run asks a question.
func (u *Unnamed) Asked() bool { return len(u.open) > 0 }

// Last returns the answer that this one repeats, or else the last recorded one.
func (u *Unnamed) Last(ctx context.Context, past Past) Found {
	if !u.last.same && u.own.same {
		return u.own.found.withActor(ctx, past)
	}
	return u.last.found.withActor(ctx, past)
}

// Search returns the id of the interrupt that the answer is for, "" if no question is open. Repeated reports that the content equals the
// last answer, or the last answer of the same actor: others may have answered between a call and its repetition.
func (u *Unnamed) Search(ctx context.Context, past Past, executionID string) (interruptID string, found Repeat, err error) {
	u.runs = append([]string{executionID}, u.runs...)
	seen := map[string]bool{}
	for i := 0; i < len(u.runs); i++ {
		if seen[u.runs[i]] {
			continue
		}
		if len(seen) == maxAnswerRuns {
			return "", NotRepeated, u.refusal(executionID, "the run has too many subworkflows to tell which question an answer without its id is for")
		}
		seen[u.runs[i]] = true
		if err := u.scan(ctx, past, u.runs[i]); err != nil && (i == 0 || !errors.Is(err, problem.ExecutionNotFound)) {
			return "", NotRepeated, err
		}
	}
	switch {
	case u.last.same || u.own.same:
		return "", Repeated, nil
	case (u.Overtaken || u.overtaken()) && u.last.found.Record != nil:
		return u.last.question(), NotRepeated, nil
	}
	switch len(u.open) {
	case 0:
		return "", NotRepeated, nil
	case 1:
	default:
		return "", NotRepeated, u.refusal(executionID, "cannot resume: %d questions are open", len(u.open))
	}
	for _, l := range u.lapses {
		if !l.at.Before(u.last.at) {
			return "", NotRepeated, u.refusal(executionID, "cannot resume: question %q has ended without an answer, so the answer may have been meant for it", l.node)
		}
	}
	return u.open[0].id, NotRepeated, nil
}

// maxListed bounds the open questions listed in a rejection, maxListedPrompt the characters of each.
const maxListed, maxListedPrompt = 8, 100

// refusal rejects an ambiguous answer, with a list of the open questions.
func (u *Unnamed) refusal(executionID, format string, args ...any) error {
	var texts []string
	list := []any{}
	for i, q := range u.open {
		if i == maxListed {
			texts = append(texts, fmt.Sprintf("and %d more", len(u.open)-i))
			break
		}
		prompt := problem.Excerpt(q.prompt, maxListedPrompt)
		texts = append(texts, strings.TrimSpace(q.id+" "+prompt))
		list = append(list, map[string]any{"interrupt_id": q.id, "node_id": q.node, "prompt": prompt})
	}
	e := problem.New(problem.InvalidResumePayload, format, args...).WithReason(problem.AnswerAmbiguous).WithPlace(problem.Place{ExecutionID: executionID})
	if e.Details = map[string]any{"open": list}; len(texts) > 0 {
		return e.WithHint("Nothing was changed. Answer with the interrupt id of the question that is meant. Open: %s.", strings.Join(texts, "; "))
	}
	return e.WithHint("Nothing was changed. Answer with the interrupt id of the question that is meant.")
}

// questionsOf identifies a node's visit. A node may ask several questions in one visit, one after the other.
type questionsOf struct {
	node  string
	visit int
}

// scan reads a history backwards: to its newest answers, and on to the start of each wait that ended since the newest answer (a question
// with a deadline, a branch that was not needed, a node whose failure was caught).
func (u *Unnamed) scan(ctx context.Context, past Past, id string) error {
	answered := map[questionsOf]int{}
	for _, q := range u.open {
		if q.executionID == id {
			answered[questionsOf{q.node, max(q.visit, 1)}]++ // or possibly still open
		}
	}
	ended := map[string]bool{} // nodes
	var newest time.Time
	found, ownFound := false, false
	var unsigned *pastAnswer // the answer of the previous record, which does not name its actor
	own := func(a pastAnswer, by *history.Actor) {
		if !ownFound && (by == nil && u.Actor == nil || by != nil && u.Actor != nil && *by == *u.Actor) {
			ownFound = true
			u.own.take(a)
		}
	}
	return backwards(ctx, past, id, func(rec *history.Record) (done bool) {
		p := &rec.Payload
		at := questionsOf{p.NodeID, max(p.Visit, 1)}
		if a := unsigned; a != nil {
			if unsigned = nil; rec.Kind == history.Command {
				own(*a, p.Actor)
			} else {
				own(*a, nil)
			}
		}
		if newest.IsZero() {
			newest = rec.CreatedAt
		}
		if child := p.ChildExecutionID; child != "" && history.Descends(child, id) {
			u.runs = append(u.runs, child)
		}
		switch {
		case rec.Name == history.InterruptResumed:
			answered[at]++
			if p.AnswerExpired() {
				if !found {
					u.lapses = append(u.lapses, lapse{rec.CreatedAt, p.NodeID})
				}
				break
			}
			a := pastAnswer{rec.CreatedAt, sameObject(p.SignalPayload, u.Payload), Found{Record: rec, run: id}}
			if !found {
				found = true
				u.last.take(a)
			}
			switch {
			case ownFound:
			case p.Actor != nil:
				own(a, p.Actor)
			default:
				unsigned = &a
			}
		case rec.Name == history.InterruptRaised && answered[at] > 0:
			answered[at]--
		case rec.Name == history.InterruptRaised && (!found || len(ended) > 0):
			u.lapses = append(u.lapses, lapse{newest, p.NodeID})
		case rec.Name == history.NodeScheduled:
			delete(ended, p.NodeID)
		case found:
		case rec.Name == history.FailNode && p.CaughtBy != "":
			ended[p.CaughtBy] = true
		case rec.Name == history.TimerFired && p.TimerKind == machine.TimerKindDeadline, rec.Name == history.ParallelBranchCancelled:
			ended[p.NodeID] = true
		}
		return found && ownFound && len(ended) == 0
	})
}
