package transfer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Retry describes how a failed run is retried: from before the failed node or, if agents have recorded steps there, from their last
// step.
type Retry struct {
	// Node is the failed node, "" for the run as a whole; Code and Message describe the failure. Compensated counts the visits undone
	// since.
	Node, Code, Message string
	Compensated         int
	// AtLimit is set if the run failed at a run limit.
	AtLimit bool
	// Anew restarts the node in any case. RepeatEffects allows calls to be repeated.
	Anew, RepeatEffects bool
	// Current continues the failed agent with its current configuration.
	Current bool

	// failed is the attempt to continue or, with Anew, to restart; nil if the past ends before it.
	failed *attemptID
	// visitExpired is set if the deadline of the visit has ended the attempt.
	visitExpired bool
}

// attemptID identifies an attempt within a run.
type attemptID struct {
	node           string
	visit, attempt int
}

func idOf(p *history.Payload) attemptID {
	return attemptID{p.NodeID, max(p.Visit, 1), max(p.Attempt, 1)}
}

func (a attemptID) String() string { return fmt.Sprintf("%s#%d.%d", a.node, a.visit, a.attempt) }

// agentAttempt is an attempt of an agent with recorded steps.
type agentAttempt struct {
	attemptID
	steps []agentsteps.Step
	seqs  []int64
	// completed is the seq of its outcome, if it succeeded.
	completed int64
}

// agentAttempts returns the attempts of agents, in the order of their first steps.
func agentAttempts(records []history.Record) []*agentAttempt {
	var all []*agentAttempt
	find := func(id attemptID) *agentAttempt {
		i := slices.IndexFunc(all, func(a *agentAttempt) bool { return a.attemptID == id })
		if i < 0 {
			return nil
		}
		return all[i]
	}
	for i := range records {
		r := &records[i]
		p := &r.Payload
		if p.AgentStep == nil {
			if r.Name == history.ActivityCompleted && !p.Replayed {
				id := idOf(p)
				for _, a := range all { // the outcome of a first attempt has no number
					if a.node == id.node && a.visit == id.visit && a.completed == 0 {
						a.completed = r.Seq
					}
				}
			}
			continue
		}
		key, kind, _, _ := p.Step()
		s := agentsteps.Step{Key: key, Kind: kind, Body: p.AgentStep}
		if kind == machine.StepAnswer {
			s.Body = maps.Clone(s.Body)
			s.Body[agentsteps.Payload] = p.SignalPayload
		}
		a := find(idOf(p))
		if a == nil {
			if !agentsteps.Of([]agentsteps.Step{s}) {
				continue
			}
			a = &agentAttempt{attemptID: idOf(p)}
			all = append(all, a)
		}
		a.steps, a.seqs = append(a.steps, s), append(a.seqs, r.Seq)
	}
	return all
}

// AgentContinues returns the step after which a retry continues the agent of a failed node, and the number of tool calls kept; "" if
// the retry begins before the node or is rejected. If a budget was spent, this holds for a retry with Current. records are the last
// records of the run.
func AgentContinues(records []history.Record, node, code string) (after string, calls int) {
	end := decisive(records, node)
	if end == nil || end.Name != history.ActivityFailed || agentsteps.Ended(code) {
		return "", 0
	}
	for _, a := range agentAttempts(records) {
		if a.attemptID != idOf(&end.Payload) {
			continue
		}
		kept := a.steps[:agentsteps.Kept(a.steps, code)]
		for _, s := range slices.Backward(kept[min(1, len(kept)):]) {
			if s.Kind != agentsteps.Continued && s.Kind != agentsteps.Reconfigured { // these separate the agent's own steps
				return s.Key, agentsteps.Made(kept)
			}
		}
	}
	return "", 0
}

// FailedChild returns the subworkflow that failed a run at a node; "" if the failure has another cause.
func FailedChild(records []history.Record, node string) string {
	if end := decisive(records, node); end != nil && end.Name == history.SubworkflowCompleted {
		return end.Payload.ChildExecutionID
	}
	return ""
}

// before returns the steps up to a record.
func (a *agentAttempt) before(seq int64) []agentsteps.Step {
	n, _ := slices.BinarySearch(a.seqs, seq+1)
	return a.steps[:n]
}

// retried finds where the new run begins. It sets BeforeNode, or Seq and the attempt to continue.
func (f *ForkedPast) retried(records []history.Record) error {
	t := f.Retry
	at := problem.Place{ExecutionID: f.From, NodeID: t.Node}
	if t.AtLimit || t.Node == "" && t.Compensated == 0 {
		f.Seq = int64(len(records)) // the end is not copied
		return nil
	}
	f.BeforeNode = t.Node
	if t.Compensated > 0 { // the undone visits come before that node
		before, node := undoneBefore(records)
		f.BeforeNode = cmp.Or(node, t.Node)
		if node != "" && f.Correction == nil {
			f.BeforeNode, f.Seq = "", before
		}
		return nil
	}
	agents := agentAttempts(records)
	cut := f.cut(records)
	end := decisive(records, t.Node)
	if end == nil && t.Code == string(problem.Timeout) {
		end = expired(records, t.Node)
	}
	var id attemptID
	if end != nil {
		id = idOf(&end.Payload)
	}
	involved := slices.ContainsFunc(agents, func(a *agentAttempt) bool { return a.seqs[0] > cut || a.attemptID == id })
	child := end != nil && end.Name == history.SubworkflowCompleted
	if child && !t.Anew && f.Correction == nil && !f.Changed {
		below, err := f.Below(end.Payload.ChildExecutionID)
		if err != nil {
			return err
		}
		involved = involved || below.Seq > 0 || !below.Exists && slices.ContainsFunc(records, func(r history.Record) bool {
			return r.Name == history.SubworkflowStarted && r.Payload.ChildExecutionID == end.Payload.ChildExecutionID && r.Payload.ForkedFrom.ExecutionID != ""
		})
	}
	if !involved || end == nil || t.Anew || f.Correction != nil || f.Changed {
		if end != nil && end.Seq == cut+1 { // an item of a map: its steps come before its end
			t.failed, t.Anew = &id, true
		}
		return f.rejectEffects(agents, cut, at)
	}
	switch {
	case child: // f.Below has checked its agents
	case agentsteps.Ended(t.Code):
		return problem.New(problem.ValidationError, "the agent at %q ended with %s and cannot continue", t.Node, t.Code).WithPlace(at).
			WithHint("Restart the node with ForkRequest.Anew.")
	case agentsteps.Spent(t.Code) && f.Parent != "":
		return problem.New(problem.AgentBudgetSpent, "the agent at %q of a subworkflow has used up its budget (%s) and would end at once", t.Node, t.Code).WithPlace(at).
			WithHint("Raise the budget in the configuration of the agent, and restart the subworkflow with ForkRequest.Anew.")
	case agentsteps.Spent(t.Code) && !t.Current:
		return problem.New(problem.AgentBudgetSpent, "the agent at %q has used up its budget (%s) and would end at once", t.Node, t.Code).WithPlace(at).
			WithHint("Raise the budget in the configuration of the agent, and continue it with ForkRequest.CurrentAgentConfig.")
	}
	if !child {
		t.failed = &id
	}
	f.BeforeNode, f.Seq = "", end.Seq-1
	if p := &records[end.Seq-2].Payload; end.Seq > 1 && p.TimerKind == machine.TimerKindDeadline && p.NodeID == end.Payload.NodeID {
		f.Seq--
		t.visitExpired = true
	}
	return nil
}

// cut returns the seq where the past ends if the node is restarted.
func (f *ForkedPast) cut(records []history.Record) int64 {
	if f.Correction == nil {
		if seq := beforeItem(records, f.BeforeNode); seq > 0 {
			return seq
		}
	}
	return beforeNode(records, f.BeforeNode)
}

func undoneBefore(records []history.Record) (int64, string) {
	before, node, _ := history.BeforeRollback(func(from int64, limit int) ([]history.Record, error) {
		from = min(from-1, int64(len(records)))
		return records[from:min(from+int64(limit), int64(len(records)))], nil
	})
	return before, node
}

// decisive returns the failure of the attempt or subworkflow that failed a run at a node, including items of its map and its branches.
func decisive(records []history.Record, node string) *history.Record {
	for _, r := range slices.Backward(records) {
		p := &r.Payload
		failed := r.Name == history.ActivityFailed && !p.WillRetry || r.Name == history.SubworkflowCompleted && p.Failed
		if !failed || p.Replayed || p.Code == string(problem.ActivityCancelled) {
			continue
		}
		if p.NodeID == node || p.Span != nil && p.Span.ParallelNodeID == node {
			return &r
		}
	}
	return nil
}

// expired returns the timeout of a node's newest visit, such as a parallel block; nil if it did not time out.
func expired(records []history.Record, node string) *history.Record {
	for _, r := range slices.Backward(records) {
		switch {
		case r.Payload.NodeID != node:
		case r.Name == history.TimerFired:
			return &r
		case r.Name == history.NodeScheduled:
			return nil
		}
	}
	return nil
}

// rejectEffects rejects a past that drops calls of agents with side effects, since they would be repeated under other keys.
func (f *ForkedPast) rejectEffects(agents []*agentAttempt, cut int64, at problem.Place) error {
	if f.Retry.RepeatEffects {
		return nil
	}
	var lost []string
	for _, a := range agents {
		kept := agentsteps.Effects(a.before(cut))
		if t := f.Retry; t.failed != nil && *t.failed == a.attemptID {
			kept = nil
		}
		base := cmp.Or(agentsteps.KeyBase(&a.steps[0]), f.From+":"+a.String())
		for _, c := range agentsteps.Effects(a.steps) {
			if a.completed > 0 && a.completed <= cut || slices.ContainsFunc(kept, func(k agentsteps.Call) bool { return k.Key == c.Key && (c.Open || !k.Open) }) {
				continue // an agent handles a call with unknown outcome as after a crash
			}
			lost = append(lost, Effect(base, &c))
		}
	}
	return RepeatsEffects(lost, at)
}

// EffectsOf returns the calls with side effects of all agents of a run.
func EffectsOf(executionID string, records []history.Record) []string {
	var calls []string
	for _, a := range agentAttempts(records) {
		base := cmp.Or(agentsteps.KeyBase(&a.steps[0]), executionID+":"+a.String())
		for _, c := range agentsteps.Effects(a.steps) {
			calls = append(calls, Effect(base, &c))
		}
	}
	return calls
}

// maxArguments is the number of characters shown of a call's arguments.
const maxArguments = 200

// Effect describes a call that would be made again.
func Effect(base string, c *agentsteps.Call) string {
	text := fmt.Sprintf("%s %s (key %s/%s)", c.Tool, problem.ClipRunes(string(jsonvalue.Canonical(c.Arguments)), maxArguments), base, c.Key)
	if c.Open {
		text += ", which may have happened"
	}
	return text
}

// maxEffects is the number of calls named in a rejection.
const maxEffects = 20

// RepeatsEffects returns the error of a retry that would repeat calls; nil if calls is empty.
func RepeatsEffects(calls []string, at problem.Place) error {
	if len(calls) == 0 {
		return nil
	}
	more := ""
	if n := len(calls) - maxEffects; n > 0 {
		calls, more = calls[:maxEffects], fmt.Sprintf("; and %d more", n)
	}
	return problem.New(problem.RetryRepeatsEffects, "a restart would repeat calls under other keys: %s%s", strings.Join(calls, "; "), more).WithPlace(at).
		WithHint("Nothing was written. Retry without a correction and without ForkRequest.Anew if the agent can continue. Otherwise check the effects of the calls, and allow them again with ForkRequest.RepeatEffects.")
}

// shiftOf returns how much later the records of the new run are. An attempt or node that timed out gets its full time again.
func (f *ForkedPast) shiftOf(all []history.Record, n int) time.Duration {
	if f.Retry != nil && f.Retry.failed != nil && !f.Retry.Anew && f.Retry.Code == string(problem.Timeout) {
		for i := range n {
			if r := &all[i]; !f.Retry.visitExpired && r.Name == history.ActivityRequested && r.Payload.AgentStep == nil && idOf(&r.Payload) == *f.Retry.failed {
				return f.Now.Sub(r.CreatedAt)
			}
		}
		for i := range n {
			if r := &all[i]; r.Name == history.NodeScheduled && r.Payload.NodeID == f.Retry.failed.node && max(r.Payload.Visit, 1) == f.Retry.failed.visit {
				return f.Now.Sub(r.CreatedAt)
			}
		}
	}
	return f.Now.Sub(all[n-1].CreatedAt)
}

// goOn prepares the recorded steps of agents in a copied past for continuing; in a retry under the keys of the first run, with a step
// that records the failure. It drops the steps of the failed attempt that are not kept. from are the copied records.
func (f *ForkedPast) goOn(out, from []history.Record) []history.Record {
	agents := agentAttempts(out)
	for _, a := range agents {
		if a.completed > 0 {
			continue
		}
		p := &out[a.seqs[0]-1].Payload
		if f.Retry == nil { // a fork makes its own calls
			if _, named := p.AgentStep[agentsteps.Continues]; named {
				p.AgentStep = without(p.AgentStep, agentsteps.Continues)
			}
			continue
		}
		p.AgentStep = agentsteps.From(p.AgentStep, f.From, a.String(), f.Seq)
	}
	if f.Retry == nil || f.Retry.failed == nil {
		return out
	}
	i := slices.IndexFunc(agents, func(a *agentAttempt) bool { return a.attemptID == *f.Retry.failed })
	if i < 0 {
		return out // it has failed before its first step
	}
	a := agents[i]
	kept := agentsteps.Kept(a.steps, f.Retry.Code)
	if f.Retry.Anew {
		kept = 0
	}
	drop := map[int64]bool{}
	for _, seq := range a.seqs[kept:] {
		drop[seq] = true
	}
	seam := out[a.seqs[0]-1]
	out = dropped(out, func(i int) bool { return drop[int64(i+1)] })
	if f.Retry.Anew {
		return out
	}
	seam.Seq, seam.CreatedAt = int64(len(out)+1), f.Now
	if n := len(out); n > 0 && out[n-1].CreatedAt.After(seam.CreatedAt) {
		seam.CreatedAt = out[n-1].CreatedAt
	}
	seam.Payload.Actor = f.Actor
	seam.Payload.AgentStep = agentsteps.Seam(kept+1, f.Retry.Code, f.Retry.Message, f.Retry.Current)
	return append(out, seam)
}

// continueBelow sets, in the records of the subworkflows that the new run waits for, the runs to continue: in a retry the other run's
// subworkflows, under their keys. In a plain fork they restart.
func (f *ForkedPast) continueBelow(out []history.Record) error {
	ended := map[string]bool{}
	for i := range out {
		if out[i].Name == history.SubworkflowCompleted {
			ended[out[i].Payload.ChildExecutionID] = true
		}
	}
	for i := range out {
		p := &out[i].Payload
		switch {
		case out[i].Name != history.SubworkflowStarted:
			continue
		case f.Retry == nil || ended[p.ChildExecutionID]:
			p.ForkedFrom = history.ForkOrigin{}
			continue
		}
		rest, own := strings.CutPrefix(p.ChildExecutionID, f.To)
		if !own {
			continue
		}
		from, err := f.Below(f.From + rest)
		switch {
		case err != nil:
			return err
		case from.Exists: // else keep the origin that the other run was about to continue
			p.ForkedFrom = history.ForkOrigin{}
			if from.Seq > 0 {
				p.ForkedFrom = history.ForkOrigin{ExecutionID: f.From + rest, Seq: from.Seq}
			}
		}
	}
	return nil
}

// HasAgents reports whether agents have recorded steps in a run.
func HasAgents(records []history.Record) bool { return len(agentAttempts(records)) > 0 }

func without(m map[string]any, name string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if k != name {
			out[k] = v
		}
	}
	return out
}

// continuing returns the keys of the agents' attempts that a retry continues; effects of their steps may have begun.
func (f *ForkedPast) continuing(past []history.Record) map[string]bool {
	if f.Retry == nil {
		return nil
	}
	keys := map[string]bool{}
	for _, a := range agentAttempts(past) {
		if a.completed == 0 {
			keys[a.String()] = true
		}
	}
	return keys
}

// beforeUndone moves the end of a past before BeforeNode to before the first visit of that node that a rollback has undone or will
// undo. It rejects a past with any other undone visit: the new run would depend on effects that no longer exist.
func (f *ForkedPast) beforeUndone(records []history.Record) error {
	var undone history.Undone
	for i := range records {
		undone.Take(&records[i])
	}
	undoing, err := f.undoing(records)
	if err != nil {
		return err
	}
	for _, v := range undoing {
		undone.Undoing(v)
	}
	before, node := undone.Before(f.Seq)
	switch node {
	case "":
		return nil
	case f.BeforeNode:
		f.Seq = before
		if f.Correction != nil { // the visit sees the state as it was when it was scheduled
			f.Seq = cmp.Or(beforeNode(records[:before], node), before)
		}
		return nil
	}
	does := "has undone"
	if slices.ContainsFunc(undoing, func(v history.Visit) bool { return v.NodeID == node }) {
		does = "is about to undo"
	}
	return problem.New(problem.ValidationError,
		"run %q %s node %q, and a run forked before node %q would depend on it", f.From, does, node, f.BeforeNode).
		WithPlace(problem.Place{ExecutionID: f.From, NodeID: node}).
		WithHint("Fork it before node %q; a fork at a record counts undone visits as done.", node)
}

// undoing lists the visits that an unfinished rollback will undo.
func (f *ForkedPast) undoing(records []history.Record) ([]history.Visit, error) {
	began := slices.ContainsFunc(records, func(r history.Record) bool { return r.Name == history.RollbackStarted })
	if !began || slices.ContainsFunc(records, ends) {
		return nil, nil
	}
	prog := f.Own
	if prog == nil {
		prog = f.Program
	}
	m, _, _, err := Replay(prog, f.From, records, InputOf(records), f.MaxVisits, records[len(records)-1].CreatedAt)
	if err != nil {
		return nil, err
	}
	return m.Undoing(), nil
}
