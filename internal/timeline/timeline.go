// Package timeline is the reader of histories for people. A Timeline takes the records of a run and of its subworkflows and arranges them
// by visits, attempts, waits, branches, items of maps and journal entries. The forms of this package show a timeline: a tree of lines for a
// terminal (Tree), and the journal of an agent in words. Package picture draws one, and the commands print its attempts.
//
// The package reads no store and no clock. Its texts are cleaned by the caller's function and shortened when they are taken.
package timeline

import (
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

// Timeline holds a run and its subworkflows. It is not safe for concurrent use.
type Timeline struct {
	root  *Run
	runs  map[string]*Run
	clean func(string) string
}

// New returns the timeline of a run without records. clean makes texts of definitions, outputs and models harmless where they are shown.
func New(executionID string, clean func(string) string) *Timeline {
	t := &Timeline{runs: map[string]*Run{}, clean: clean}
	t.root = t.run(executionID)
	return t
}

func (t *Timeline) run(id string) *Run {
	r := t.runs[id]
	if r == nil {
		r = &Run{ID: id, visits: map[visitKey]*Visit{}, latest: map[string]*Visit{}, unscripted: map[string][]*Visit{}}
		t.runs[id] = r
	}
	return r
}

// Root returns the run of New.
func (t *Timeline) Root() *Run { return t.root }

// Run returns a run by its id, nil if it has neither records nor a program.
func (t *Timeline) Run(executionID string) *Run { return t.runs[executionID] }

// Open returns the ids of the runs that have not ended. The root is always the last one.
func (t *Timeline) Open() []string {
	var ids []string
	for id, r := range t.runs {
		if r != t.root && r.Ended.IsZero() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return append(ids, t.root.ID)
}

// NeedsProgram reports whether Define has not been called for a run.
func (t *Timeline) NeedsProgram(executionID string) bool {
	r := t.runs[executionID]
	return r == nil || !r.defined
}

// Define sets the program of a run. With nil, a visit is in a branch only if a record names it.
func (t *Timeline) Define(executionID string, p *definition.Program) {
	r := t.run(executionID)
	r.Program, r.defined = p, true
}

// Forget drops a run other than the root. Its next record starts it anew.
func (t *Timeline) Forget(executionID string) {
	if executionID != t.root.ID {
		delete(t.runs, executionID)
	}
}

// Place is where a record belongs: to a visit and there to an attempt, a wait or a journal entry, or with a nil Visit to the run itself.
type Place struct {
	Run   *Run
	Visit *Visit
	// Attempt is that of a request, an outcome or a journal entry.
	Attempt *Attempt
	// Wait is the wait that the record starts or ends.
	Wait  *Wait
	Entry *Entry
}

// Run is one run of a timeline.
type Run struct {
	ID          string
	Name, Title string // Name is the workflow with its version
	Began       time.Time
	// Ended is zero before the end. Status and Reason describe the end.
	Ended          time.Time
	Status, Reason string
	Program        *definition.Program
	// Parent is the visit that started the run, nil for a root.
	Parent *Visit
	// Visits are all visits in the order of their starts, those in branches and those of items among them.
	Visits []*Visit
	// Main are the visits outside of blocks and maps.
	Main Sequence

	defined bool
	visits  map[visitKey]*Visit
	latest  map[string]*Visit // the newest visit by node
	// unscripted are the visits by node whose end is not recorded as a command, the oldest first.
	unscripted map[string][]*Visit
	blocks     []*Visit // the open parallel blocks, the innermost last
	maps       []*Visit // the open maps
	lastScript *Visit   // the visit of the newest command
}

type visitKey struct {
	node   string
	number int
}

// Visit is one visit of a node. An item of a map is a visit of the map's node with a number of its own.
type Visit struct {
	Node   string
	Number int
	// Seq is the seq of the first record of the visit.
	Seq int64
	// Began is zero if the record of the start is missing.
	Began time.Time
	// Ended is zero before the end.
	Ended time.Time
	State State
	// Definition is the node, nil if the program is not known.
	Definition *definition.Node
	// Sequence has the visit, nil for an item of a map. From is the visit that led here: the one before it in the sequence, or the block. It
	// is nil for the first visit, for items and for compensations.
	Sequence *Sequence
	From     *Visit
	// Compensates is the visit that this one undoes, "<node>#<visit>".
	Compensates string
	// Next is the target of a switch, or of the catch of the failure.
	Next string
	// Text is the failure, or describes the wait: the prompt or the name of the signal. Output is the beginning of the output.
	Text, Output string
	Attempts     []*Attempt
	Waits        []*Wait
	// Branches are those of a block.
	Branches []*Branch
	// Items are those of a map, set for the visit of the map and for its items.
	Items *Items
	// Child is the subworkflow that the visit started.
	Child *Run

	join     string
	scripted bool
	attempt  *Attempt // the open one
}

// State is the state of a visit.
type State int

// The states of a visit. Those from Queued to Listening are waits.
const (
	Working   State = iota
	Queued          // the attempt waits for its turn
	Retrying        // the next attempt is due later
	Sleeping        // a timer runs
	Resting         // an attempt waits for a time
	Asking          // a person is asked
	Listening       // a signal is awaited
	Succeeded
	Failed
	Dropped // not needed any more, or stopped with the run
)

// Took returns how long the visit took until it ended, or until now.
func (v *Visit) Took(now time.Time) time.Duration {
	if v.Began.IsZero() {
		return 0
	}
	if !v.Ended.IsZero() {
		now = v.Ended
	}
	return max(now.Sub(v.Began), 0)
}

// Undone returns the node whose visit a compensation undoes, "" for another visit.
func (v *Visit) Undone() string {
	node, _, _ := strings.Cut(v.Compensates, "#")
	return node
}

// IsItem reports whether the visit is the work on an item of a map.
func (v *Visit) IsItem() bool { return v.Items != nil && v.Items.Owner != v }

// Item returns the index of the item of a map that the visit works on, and the number of items, which is negative before it is recorded;
// of is 0 for other visits.
func (v *Visit) Item() (index, of int) {
	if v.IsItem() {
		return v.Number - v.Items.Owner.Number - 1, v.Items.Total
	}
	return 0, 0
}

// Block returns the parallel block around the visit, or nil.
func (v *Visit) Block() *Visit {
	if v.Sequence == nil {
		if v.IsItem() {
			return v.Items.Owner.Block()
		}
		return nil
	}
	return v.Sequence.block
}

// Attempt returns the newest attempt, nil before the first.
func (v *Visit) Attempt() *Attempt {
	if len(v.Attempts) == 0 {
		return nil
	}
	return v.Attempts[len(v.Attempts)-1]
}

// AttemptNumber returns the number of the newest attempt, 0 before the first.
func (v *Visit) AttemptNumber() int {
	if a := v.Attempt(); a != nil {
		return a.Number
	}
	return 0
}

// Wait returns the open wait, or nil.
func (v *Visit) Wait() *Wait {
	if n := len(v.Waits); n > 0 && v.Waits[n-1].Ended.IsZero() {
		return v.Waits[n-1]
	}
	return nil
}

// Wait is one wait of a visit.
type Wait struct {
	Kind         State
	Began, Ended time.Time
	// Due is when a timer fires, the next attempt starts or an attempt continues.
	Due time.Time
	// Key is the key of a journal's question.
	Key string
	// Answer is the payload of the answer or the signal, shortened. By is who gave it, nil if the record does not say.
	Answer string
	By     *history.Actor
}

// Items are the items of a map. Total is negative before it is recorded.
type Items struct {
	Owner               *Visit
	Total, Done, Failed int
	// Open are the visits of the items that have not ended.
	Open []*Visit
}

// Branch is a branch of a parallel block.
type Branch struct {
	Name string
	Sequence
	// Dropped says that the block did not need the branch.
	Dropped bool

	entry string
	nodes map[string]bool // reachable before the join
}

// Empty reports whether the branch leads to the join at once.
func (b *Branch) Empty() bool { return b.block != nil && b.entry != "" && b.entry == nextOf(b.block) }

// Done reports whether the branch has come to its end.
func (b *Branch) Done() bool {
	last := b.Last()
	return !b.Dropped && (last != nil && last.State == Succeeded || last == nil && b.Empty())
}

// took returns the time from the start of the first visit to the end of the last.
func (b *Branch) took() time.Duration {
	first, last := b.Visits[0], b.Last()
	if first.Began.IsZero() {
		return 0
	}
	return last.Ended.Sub(first.Began)
}

// Sequence is a list of visits, one after the other.
type Sequence struct {
	Visits []*Visit
	block  *Visit // nil for the main sequence
}

// Last returns the newest visit, or nil.
func (s *Sequence) Last() *Visit {
	if len(s.Visits) == 0 {
		return nil
	}
	return s.Visits[len(s.Visits)-1]
}

// Lead returns the newest visit that is not a compensation, or nil.
func (s *Sequence) Lead() *Visit {
	for _, v := range slices.Backward(s.Visits) {
		if v.Compensates == "" {
			return v
		}
	}
	return nil
}

func (s *Sequence) add(v *Visit) {
	v.Sequence, v.From = s, nil
	if v.Compensates == "" {
		if v.From = s.Lead(); v.From == nil {
			v.From = s.block
		}
	}
	s.Visits = append(s.Visits, v)
}

func (s *Sequence) remove(v *Visit) {
	s.Visits = slices.DeleteFunc(s.Visits, func(other *Visit) bool { return other == v })
}

// Attempt is one attempt of an activity or a delegate.
type Attempt struct {
	Visit  *Visit
	Number int
	// NodeType is the recorded type of the node, AgentID the agent of a delegate. Branch is the branch that the request names.
	NodeType, AgentID, Branch string
	// Host says that the MCP host performs the attempt.
	Host         bool
	Requested    time.Time
	RequestedSeq int64
	// Ended is zero without an outcome. EndedSeq is the seq of the record that ended the attempt, also of one that dropped it.
	Ended       time.Time
	EndedSeq    int64
	Outcome     Outcome
	Code, Error string
	Usage       Usage
	// Repair is the input of the next attempt, which repairs this one. Repairs says that this attempt is a repair.
	Repair  map[string]any
	Repairs bool
	// Journal has the entries that the executor recorded.
	Journal Journal
}

// Outcome is how an attempt ended.
type Outcome int

// The outcomes of an attempt.
const (
	Pending Outcome = iota
	Completed
	Failure    // the visit fails
	Retried    // another attempt follows
	SentBack   // a repair follows
	Superseded // the run or the branch ended first
)

// Took returns the time from the request to the outcome. It includes the time without a process that performed the attempt. ok is false
// without an outcome.
func (a *Attempt) Took() (d time.Duration, ok bool) {
	return a.Ended.Sub(a.Requested), !a.Ended.IsZero()
}

// Used returns the usage of the outcome, or without one the totals of the journal so far.
func (a *Attempt) Used() Usage {
	if a.Usage == nil {
		return a.Journal.Totals
	}
	return a.Usage
}

// Usage is the report of an executor about its work.
type Usage map[string]any

// Tokens returns the counted tokens; ok is false if the provider counted no tokens.
func (u Usage) Tokens() (in, out int64, ok bool) {
	prompt, isIn := u["prompt_tokens"].(float64)
	completion, isOut := u["completion_tokens"].(float64)
	return int64(prompt), int64(completion), isIn || isOut
}

// CostMicros returns the cost in millionths of a dollar, 0 without a price.
func (u Usage) CostMicros() int64 {
	micros, _ := u["cost_micros"].(float64)
	if !(micros > 0 && micros < 1<<53) {
		return 0
	}
	return int64(micros)
}

// Model returns the model that answered, "" without one.
func (u Usage) Model() string {
	model, _ := u["model"].(string)
	return model
}

// StopReason returns why an agent stopped, "" if it does not say.
func (u Usage) StopReason() string {
	reason, _ := u["stop_reason"].(string)
	return reason
}

// Partial reports whether the output was less than was asked for.
func (u Usage) Partial() bool { return u["partial"] == true }

// maxText limits the characters kept of a text.
const maxText = 300

// short cleans a text before it shortens it, so that no part of a hidden value is left.
func (t *Timeline) short(text string) string {
	return cut(strings.TrimSpace(t.clean(text)), maxText)
}
