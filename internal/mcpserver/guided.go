package mcpserver

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// guided is a refusal with the call that helps.
type guided struct {
	error
	next toolCall
	// pending are what names the attempts that the host may report, total how many there are.
	pending []members
	total   int
}

// Unwrap returns the refusal.
func (g *guided) Unwrap() error { return g.error }

// put adds the call to what is shown of the refusal. The caller has no answer from which it could want only what changed.
func (g *guided) put(f *failure) {
	if g.total > 1 {
		f.details.Put("pending", g.pending)
		f.line("pending: %s", jsonvalue.Canonical(g.pending))
		if g.total > len(g.pending) {
			f.details.Put("pending_total", float64(g.total))
			f.line("pending_total: %d", g.total)
		}
	}
	g.next.arguments = without(g.next.arguments, "since_seq")
	f.details.Put("next", g.next.members())
	f.lines = append(f.lines, g.next.lines()...)
}

// guide adds to a refusal of what a run does not wait for the call that it waits for.
func (s *server) guide(ctx context.Context, a *arguments, executionID string, refused error) error {
	e, ok := problem.As(refused)
	if !ok {
		return refused
	}
	switch e.Reason {
	case problem.NotAwaiting, problem.AnsweredDifferently, problem.AnswerAmbiguous:
	default:
		return refused
	}
	run, err := s.Status(ctx, graph.StatusRequest{ExecutionID: executionID})
	if err != nil || run.Status.Terminal() {
		return refused
	}
	return &guided{error: refused, next: s.next(s.view(ctx, a, run))}
}

// maxKeys is how many of the attempts that a run waits for a refusal names, maxKeysBytes in how many bytes.
const maxKeys, maxKeysBytes = 16, 1 << 10

// guideSubmit is guide for an outcome: the call for the attempt that was meant, if that can be told, and the keys of those that the host may
// report.
func (s *server) guideSubmit(ctx context.Context, a *arguments, run *view.Run, req graph.SubmitRequest, refused *problem.Error) error {
	if run.Status.Terminal() {
		return refused
	}
	seen := s.view(ctx, a, run)
	g := &guided{error: refused, next: s.next(seen)}
	var keyed, named []*view.Pending
	room := maxKeysBytes
	for i := range run.Pending {
		p := &run.Pending[i]
		if p.Kind != machine.WaitActivity && p.Kind != machine.WaitDelegate || !seen.isActionable(p) || isUnbound(p) {
			continue
		}
		g.total++
		key := runjson.Key(run, p)
		if room -= len(key.Append(nil)); room >= 0 && len(g.pending) < maxKeys {
			g.pending = append(g.pending, key)
		}
		if p.IdempotencyKey == req.IdempotencyKey {
			keyed = append(keyed, p)
		}
		if p.NodeID == req.NodeID {
			named = append(named, p)
		}
	}
	switch {
	case len(named) == 1 && (len(keyed) == 0 || keyed[0] == named[0]):
		g.next = answerTo(seen, named[0])
		if req.IdempotencyKey == "" || len(keyed) == 1 { // its branch alone was not right
			g.next.arguments = withOutcome(g.next.arguments, a)
			g.next.note = "The same outcome, for the attempt that waits."
		}
	case len(keyed) == 1:
		g.next = answerTo(seen, keyed[0])
	case len(named) > 0:
		g.next = answerTo(seen, named[0])
	}
	return g
}

// withOutcome puts the outcome of a call into the arguments of another one, if it is not large.
func withOutcome(args members, a *arguments) members {
	sent := readObject(a.Get("outcome"))
	i := indexOf(args, "outcome")
	if i < 0 || jsonvalue.Size(sent, maxOutcomeAgain) > maxOutcomeAgain {
		return args
	}
	args[i].Value = sent
	return args
}
