package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/picture"
	"github.com/workflows-engine/workflows-engine/internal/runtree"
)

// attempt is one attempt of an activity or a delegate, put together from its request and its outcome.
type attempt struct {
	node         string
	visit        int
	number       int
	nodeType     string
	branch       string
	by           string // what performs it: the model, the tool, the handler, the agent
	host         bool
	requested    time.Time
	requestedSeq int64
	// ended is zero while there is no outcome; then endedSeq is 0 too.
	ended       time.Time
	endedSeq    int64
	outcome     string
	code, error string
	usage       map[string]any
	// repair is what the next attempt got in hand to put this one right, nil if it got nothing; repairs says that this is
	// such an attempt.
	repair  map[string]any
	repairs bool
	// steps are those that its executor has recorded, totals their newest sums, micros those of money.
	steps  []stepLine
	totals map[string]any
	micros int64
}

// The outcomes of an attempt. Open means that there is none yet, dropped that there will be none: the run, or the branch,
// ended first.
const (
	attemptOpen      = "open"
	attemptCompleted = "completed"
	attemptFailed    = "failed"
	attemptRetried   = "failed, tried again"
	attemptSentBack  = "failed, sent back"
	attemptDropped   = "dropped"
)

// attempts follows the attempts of one run from its first record on.
type attempts struct {
	facts map[string]nodeFacts
	list  []*attempt
	open  map[attemptKey]*attempt
	// sentBack are the visits whose next attempt is a repair.
	sentBack map[attemptKey]bool
}

// attemptKey names the attempt that an outcome belongs to; a node has at most one open attempt a visit.
type attemptKey struct {
	node   string
	visit  int
	branch string
}

func newAttempts(facts map[string]nodeFacts) *attempts {
	return &attempts{facts: facts, open: map[attemptKey]*attempt{}, sentBack: map[attemptKey]bool{}}
}

// apply takes the next record, and returns the attempt that it ends; nil if it ends none.
func (a *attempts) apply(r history.Record) *attempt {
	p := &r.Payload
	key := attemptKey{node: p.NodeID, visit: max(p.Visit, 1)}
	if p.Span != nil {
		key.branch = p.Span.ParallelNodeID + "\x00" + p.Span.BranchName
	}
	if p.AgentStep != nil {
		if t := a.open[key]; t != nil {
			t.addStep(&r)
		}
		return nil
	}
	switch r.Name {
	case history.ActivityRequested:
		if p.ExternalTask != "" && a.open[key] != nil {
			return nil // what became of the attempt's task at its agent
		}
		a.begin(key, r)
	case history.ActivityCompleted:
		if p.Replayed {
			return nil // a replay of the reference engine repeats the outcome, without performing anything
		}
		return a.end(key, r, attemptCompleted)
	case history.ActivityFailed:
		if p.Repair != nil {
			return a.end(key, r, attemptSentBack)
		}
		if p.WillRetry {
			return a.end(key, r, attemptRetried)
		}
		return a.end(key, r, attemptFailed)
	case history.ParallelBranchCancelled:
		a.drop(r, p.NodeID+"\x00"+p.BranchName)
	case history.ExecutionCompleted, history.ExecutionFailed, history.ExecutionCancelled:
		a.drop(r, "")
	}
	return nil
}

// begin notes a request. A request that is recorded again, as where a remote agent has taken the task, begins nothing.
func (a *attempts) begin(key attemptKey, r history.Record) {
	p := &r.Payload
	if open := a.open[key]; open != nil {
		if p.ExternalTask != "" || open.number == max(p.Attempt, 1) {
			return
		}
		open.endedSeq, open.outcome = r.Seq, attemptDropped
	}
	t := &attempt{
		node: p.NodeID, visit: key.visit, number: max(p.Attempt, 1), nodeType: p.NodeType, host: p.Mode == "host_mediated",
		requested: r.CreatedAt, requestedSeq: r.Seq, outcome: attemptOpen, repairs: a.sentBack[key],
	}
	delete(a.sentBack, key)
	if p.Span != nil {
		t.branch = p.Span.BranchName
	}
	facts := a.facts[p.NodeID]
	if t.by = facts.by; p.AgentID != "" {
		t.by = p.AgentID
	}
	if t.nodeType == "" {
		t.nodeType = facts.nodeType
	}
	a.list = append(a.list, t)
	a.open[key] = t
}

func (a *attempts) end(key attemptKey, r history.Record, outcome string) *attempt {
	p := &r.Payload
	t := a.open[key]
	if t == nil && p.Span == nil {
		key, t = a.inBranch(key)
	}
	if t == nil {
		return nil
	}
	delete(a.open, key)
	if p.Repair != nil {
		a.sentBack[key] = true
	}
	t.ended, t.endedSeq, t.outcome = r.CreatedAt, r.Seq, outcome
	t.code, t.error, t.usage, t.repair = p.Code, p.Error, p.Usage, p.Repair
	if model, ok := p.Usage["model"].(string); ok && model != "" {
		t.by = model
	}
	return t
}

// inBranch finds the open attempt of a visit whose outcome does not name its branch, as that of an executor does not.
func (a *attempts) inBranch(key attemptKey) (attemptKey, *attempt) {
	for open, t := range a.open {
		if open.node == key.node && open.visit == key.visit {
			return open, t // a visit has one, whatever its branch
		}
	}
	return key, nil
}

// drop ends what a branch, or with "" the whole run, still has open.
func (a *attempts) drop(r history.Record, branch string) {
	for key, t := range a.open {
		if branch == "" || key.branch == branch {
			t.endedSeq, t.outcome = r.Seq, attemptDropped
			delete(a.open, key)
		}
	}
}

// from returns the attempts that a record from this number on belongs to, in the order of their requests.
func (a *attempts) from(seq int64) []*attempt {
	var list []*attempt
	for _, t := range a.list {
		if t.endedSeq == 0 || t.endedSeq >= seq {
			list = append(list, t)
		}
	}
	return list
}

// took is the time from the request's commit to the outcome's; ok is false without an outcome. What a host waited before
// it began, and the time in which no process drove the run, is in it: the history has no record of a take-over.
func (t *attempt) took() (d time.Duration, ok bool) {
	return t.ended.Sub(t.requested), !t.ended.IsZero()
}

// tookText is took for people, "" without an outcome.
func (t *attempt) tookText() string {
	if d, ok := t.took(); ok {
		return picture.Elapsed(d)
	}
	return ""
}

// used is what the attempt has taken: its usage, or what its steps come to so far.
func (t *attempt) used() map[string]any {
	if t.usage == nil {
		return t.totals
	}
	return t.usage
}

// tokens returns what the provider counted; ok is false if it counted nothing.
func (t *attempt) tokens() (in, out int64, ok bool) { return runtree.Tokens(t.used()) }

// cost is what the attempt has cost, in millionths of a dollar; 0 if its model has no price.
func (t *attempt) cost() int64 {
	micros, _ := t.used()["cost_micros"].(float64)
	return int64(micros)
}

// tokensText is tokens for people: in+out; "" if nothing was counted.
func tokensText(usage map[string]any) string {
	if in, out, ok := runtree.Tokens(usage); ok {
		return fmt.Sprintf("%d+%d tokens", in, out)
	}
	return ""
}

// facts is what the history table says of an outcome before the output or error: how long it took, by whom, for how much.
func (t *attempt) factsText() string {
	var parts []string
	for _, part := range []string{t.tookText(), t.byText(), tokensText(t.usage)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}

// byText names what performed the attempt.
func (t *attempt) byText() string {
	if t.host {
		return strings.TrimSpace(t.by + " (host)")
	}
	return t.by
}

// name is the node, with the visit from the second on, as in effect keys.
func (t *attempt) name() string {
	name := t.node
	if t.visit > 1 {
		name += fmt.Sprintf("#%d", t.visit)
	}
	return name
}
