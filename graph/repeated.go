package graph

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// A caller that has lost the answer cannot know whether its call was taken, so it calls again. A submit, resume or
// signal that is refused is therefore looked for in the history: if it was taken before, it is answered with where the
// run stands now. Only refused calls pay for it, and signals with a key to a run that has started subworkflows: they are
// looked for first.

// repeated is a call that was looked for in the history.
type repeated int

const (
	notRepeated repeated = iota
	sameAgain            // it was taken before
	otherAgain           // its key was used for something else
)

// verdict is the error of a refused call that was looked for in the history: none if it was taken before.
func (r repeated) verdict(refusal error, code problem.Code, at problem.Place, what string) error {
	switch r {
	case sameAgain:
		return nil
	case otherAgain:
		return problem.New(code, "%s was used before, with another content", what).WithPlace(at).
			WithHint("What was recorded first stands; nothing was changed. workflow_status shows what the run waits for now.")
	default:
		return refusal
	}
}

// backwards gives the records of a run to f, the newest first, until f returns true.
func (r *Runner) backwards(ctx context.Context, id string, f func(*history.Record) bool) error {
	const page = 256
	exec, err := r.store.Execution(ctx, id)
	if err != nil {
		return err
	}
	for last := exec.Seq; last > 0; last -= page {
		from := max(last-page+1, 1)
		records, err := r.store.Read(ctx, id, from, int(last-from+1))
		if err != nil {
			return err
		}
		for i := len(records) - 1; i >= 0; i-- {
			if f(&records[i]) {
				return nil
			}
		}
	}
	return nil
}

// ownerOf reads a key or id: the run it is of, the given one or a subworkflow below it, the node, visit and attempt (0
// for ids without one). node is the name of the node if it is known, which may hold what separates the parts.
func ownerOf(executionID, key, node string) (id, nodeID string, visit, attempt int, ok bool) {
	hash := strings.LastIndexByte(key, '#')
	if hash < 0 {
		return "", "", 0, 0, false
	}
	colon := len(executionID)
	switch below := strings.HasPrefix(key, executionID+childMark); {
	case node != "":
		colon = strings.LastIndex(key, ":"+node+"#")
	case below:
		colon = strings.LastIndexByte(key[:hash], ':')
	}
	if colon < 0 || colon >= hash || !strings.HasPrefix(key, executionID+":") || colon > len(executionID) && !strings.HasPrefix(key, executionID+childMark) {
		return "", "", 0, 0, false
	}
	number, rest, _ := strings.Cut(key[hash+1:], ".")
	visit, err := strconv.Atoi(number)
	if rest != "" && err == nil {
		attempt, err = strconv.Atoi(rest)
	}
	return key[:colon], key[colon+1 : hash], visit, attempt, err == nil && visit > 0
}

// family gives a run and the subworkflows that it started last, one in the other.
func (r *Runner) family(ctx context.Context, id string) []string {
	ids := []string{id}
	for range r.opts.MaxDepth {
		exec, err := r.store.Execution(ctx, id)
		if err != nil || exec.ChildExecutionID == "" || exec.ChildExecutionID == id {
			break
		}
		id = exec.ChildExecutionID
		ids = append(ids, id)
	}
	return ids
}

// submittedBefore looks for a refused submit: by its key, or without one by node, branch and content.
func (r *Runner) submittedBefore(ctx context.Context, req SubmitRequest, o machine.Outcome) (repeated, error) {
	var ids []string
	visit, attempt := 0, 0
	if req.IdempotencyKey == "" {
		ids = r.family(ctx, req.ExecutionID)
	} else {
		id, _, v, a, ok := ownerOf(req.ExecutionID, req.IdempotencyKey, req.NodeID)
		if !ok {
			return notRepeated, nil
		}
		ids, visit, attempt = []string{id}, v, a
	}
	found := notRepeated
	for _, id := range ids {
		same := func(rec *history.Record) bool { return r.sameOutcome(ctx, id, rec, o) }
		err := r.backwards(ctx, id, func(rec *history.Record) bool {
			p := &rec.Payload
			if p.NodeID != req.NodeID || rec.Name != history.ActivityCompleted && rec.Name != history.ActivityFailed {
				return false
			}
			switch {
			case visit == 0: // no key: only what was recorded last for this node and branch
				if p.Span != nil && !sameSpan(p.Span, req.Span) {
					return false
				}
				found = matched(same(rec), notRepeated)
				return true
			case max(p.Visit, 1) != visit || p.Attempt > 0 && attempt > 0 && p.Attempt != attempt:
				return false
			case p.IdempotencyKey == req.IdempotencyKey:
				found = matched(same(rec), otherAgain)
				return true
			case p.IdempotencyKey == "" && same(rec): // sent without the key at first
				found = sameAgain
				return true
			default:
				return false
			}
		})
		if err != nil && !errors.Is(err, problem.ExecutionNotFound) || found != notRepeated {
			return found, err
		}
	}
	return found, nil
}

func matched(same bool, otherwise repeated) repeated {
	if same {
		return sameAgain
	}
	return otherwise
}

// sameOutcome compares a submitted outcome with one that the run with the id has recorded.
func (r *Runner) sameOutcome(ctx context.Context, id string, rec *history.Record, o machine.Outcome) bool {
	p := &rec.Payload
	if rec.Name == history.ActivityFailed {
		if p.Code == string(problem.OutputSchemaViolation) {
			// A result that broke output_schema was recorded as a failure, without the result: of a result that is sent now
			// only the violation can be compared.
			o = r.asRecorded(ctx, id, o)
		}
		return !o.OK && p.Error == o.Error && p.Code == o.Code
	}
	out, ok := o.Output.(map[string]any)
	if !o.OK || !ok {
		return false
	}
	recorded, _ := p.Result.Value.(map[string]any)
	if p.Correlation == "" {
		return jsonvalue.Equal(object(recorded), out)
	}
	plain := jsonvalue.CloneMap(out)
	delete(plain, "delegateCorrelationId")
	delete(plain, "externalTaskId")
	return jsonvalue.Equal(object(recorded), object(plain))
}

// asRecorded gives an outcome as the run with the id records it. If its definition is not known the outcome stays as it is.
func (r *Runner) asRecorded(ctx context.Context, id string, o machine.Outcome) machine.Outcome {
	exec, err := r.store.Execution(ctx, id)
	if err != nil {
		return o
	}
	prog, err := r.library.stored(ctx, exec.DefinitionHash)
	if err != nil {
		return o
	}
	node := prog.Node(o.NodeID)
	if node == nil {
		return o
	}
	return machine.AsRecorded(node, o)
}

func object(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// resumedBefore looks for a refused resume by the interrupt's id; without one it cannot be told from another answer.
func (r *Runner) resumedBefore(ctx context.Context, req ResumeRequest, payload map[string]any) (repeated, error) {
	// The question of an agent, "<node>#<visit>.<attempt>/<number>", is recorded with its id.
	raised, _, question := strings.Cut(req.InterruptID[strings.LastIndexByte(req.InterruptID, '#')+1:], "/")
	raised = req.InterruptID[:strings.LastIndexByte(req.InterruptID, '#')+1] + raised
	id, node, visit, _, ok := ownerOf(req.ExecutionID, raised, "")
	if !ok {
		return notRepeated, nil
	}
	found := notRepeated
	err := r.backwards(ctx, id, func(rec *history.Record) bool {
		if rec.Name != history.InterruptResumed || rec.Payload.NodeID != node || max(rec.Payload.Visit, 1) != visit ||
			question && rec.Payload.IdempotencyKey != req.InterruptID {
			return false
		}
		found = matched(jsonvalue.Equal(object(rec.Payload.SignalPayload), object(payload)), otherAgain)
		return true
	})
	return found, err
}

// maxFamily is how many runs are looked at for a signal's key, the ones started last first.
const maxFamily = 64

// signalledBefore looks for a signal by its key, in the run and in the subworkflows below it.
func (r *Runner) signalledBefore(ctx context.Context, req SignalRequest, payload map[string]any) (repeated, error) {
	if req.IdempotencyKey == "" {
		return notRepeated, nil
	}
	ids := []string{req.ExecutionID}
	for i := 0; i < len(ids) && i < maxFamily; i++ {
		found := notRepeated
		err := r.backwards(ctx, ids[i], func(rec *history.Record) bool {
			p := &rec.Payload
			if rec.Name == history.SubworkflowStarted && history.Descends(p.ChildExecutionID, ids[i]) {
				ids = append(ids, p.ChildExecutionID)
			}
			if rec.Name != history.SignalReceived || p.IdempotencyKey != req.IdempotencyKey {
				return false
			}
			same := p.SignalName == req.Name && jsonvalue.Equal(object(p.SignalPayload), object(payload))
			found = matched(same, otherAgain)
			return true
		})
		if i > 0 && errors.Is(err, problem.ExecutionNotFound) {
			continue // about to be started
		}
		if err != nil || found != notRepeated {
			return found, err
		}
	}
	return notRepeated, nil
}

// signalledInFamily looks for a signal before it is delivered. A run knows the keys that it has taken itself; but where
// there are subworkflows another run may wait for the same name by now.
func (r *Runner) signalledInFamily(ctx context.Context, req SignalRequest, payload map[string]any) (repeated, error) {
	if req.IdempotencyKey == "" {
		return notRepeated, nil
	}
	exec, err := r.store.Execution(ctx, req.ExecutionID)
	if err != nil || !history.Descends(exec.ChildExecutionID, exec.ID) {
		return notRepeated, err
	}
	return r.signalledBefore(ctx, req, payload)
}
