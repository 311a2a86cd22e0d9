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

// An answer that names no interrupt was made by somebody who had one question in mind. By the time it arrives the run may ask another
// one: the answer was sent twice, or came too late. So it is taken only where it can mean one question.

// Unnamed is an answer to an interrupt that does not say which one. Each value serves one search.
type Unnamed struct {
	Payload map[string]any
	// Actor is who answers, nil if that is not known.
	Actor *history.Actor
	// Overtaken says that another answer was recorded while this one was on its way: this one was meant for what that one answered.
	Overtaken bool
	// Came and Now are when the answer came, if other processes may have recorded another one since, and when it is looked at.
	Came, Now time.Time

	open   []openQuestion
	runs   []string // whose histories are searched
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

// take takes an answer that is newer. Of two that are as new the one with the same content counts.
func (a *pastAnswer) take(b pastAnswer) {
	if b.at.After(a.at) || b.at.Equal(a.at) && b.same {
		*a = b
	}
}

// overtaken reports whether another process has recorded an answer since this one came. An answer of a time to come tells nothing: a clock
// was set.
func (u *Unnamed) overtaken() bool {
	return !u.Came.IsZero() && u.last.at.After(u.Came) && !u.last.at.After(u.Now)
}

// question is the id of the question that was answered.
func (a *pastAnswer) question() string {
	p := &a.found.Record.Payload
	if strings.Contains(p.IdempotencyKey, "#") { // of an agent's question
		return p.IdempotencyKey
	}
	return view.Key(a.found.run, fmt.Sprintf("%s#%d", p.NodeID, max(p.Visit, 1)))
}

// lapse is a question that ended without an answer after the newest answer of its run.
type lapse struct {
	at   time.Time
	node string
}

// Waits takes in a wait of the run with the id, or of a subworkflow below it. The search comes after all waits: an answer that is
// recorded between the two is then found.
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

// maxAnswerRuns is how many runs are searched: where there are more it is not known what an answer without an id can mean.
const maxAnswerRuns = 4096

// Asked reports whether the run asks anything.
func (u *Unnamed) Asked() bool { return len(u.open) > 0 }

// Last is the answer that this one repeats, or else the one that was recorded last.
func (u *Unnamed) Last(ctx context.Context, past Past) Found {
	if !u.last.same && u.own.same {
		return u.own.found.withActor(ctx, past)
	}
	return u.last.found.withActor(ctx, past)
}

// Search returns the id of the interrupt that the answer is for, "" if none is open. Repeated says that the answer has the content of the one
// that was recorded last, or of the last one of the same actor: others may have answered between a call and its repetition.
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

// maxListed is how many open questions a refusal lists, maxListedPrompt how many characters of each.
const maxListed, maxListedPrompt = 8, 100

// refusal refuses an answer that may mean more than one question, with the list of what is open.
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

// questionsOf is where the questions of a run are asked: a node may ask several in one visit, one after the other.
type questionsOf struct {
	node  string
	visit int
}

// scan reads a history backwards, to its newest answers, and on to where what has ended since the newest began: a question with a deadline, a
// block with branches that were not needed, a node whose failure was caught.
func (u *Unnamed) scan(ctx context.Context, past Past, id string) error {
	answered := map[questionsOf]int{}
	for _, q := range u.open {
		if q.executionID == id {
			answered[questionsOf{q.node, max(q.visit, 1)}]++ // or may still be
		}
	}
	ended := map[string]bool{} // nodes
	var newest time.Time
	found, ownFound := false, false
	var unsigned *pastAnswer // the answer of the record before, which does not say who made it
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
