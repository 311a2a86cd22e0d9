package runtree

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentview"
)

// Tree is what the records of a run, and of the subworkflows below it, say of its nodes.
type Tree struct {
	root *run
	runs map[string]*run
	// clean makes text harmless for where it is shown.
	clean func(string) string
	// name, kind and took are the widths of columns.
	name, kind, took int
}

// usualTook is how wide the column of times is, which most times fit.
const usualTook = 5

// New returns the tree of a run without records. clean makes the texts of definitions, outputs and errors harmless for where the
// lines are shown: one line each, without what acts on a terminal.
func New(executionID string, clean func(string) string) *Tree {
	t := &Tree{runs: map[string]*run{}, clean: clean, took: usualTook}
	t.root = t.run(executionID)
	return t
}

// run is one run of the tree.
type run struct {
	id      string
	began   time.Time
	ended   time.Time
	status  string // how it has ended
	name    string
	title   string
	why     string // the error or the reason of its end
	program *definition.Program
	// known: its program has been looked for; below: it stands under the visit that began it.
	known, below bool
	main         sequence
	// visits are those that have not ended, or that the script has not ended, by node.
	visits map[string][]*Visit
	blocks []*Visit // the open parallel blocks, the innermost last
	// done counts visits that have ended, failed attempts that have, in and out tokens.
	done, failed int
	in, out      int64
	micros       int64 // what that has cost, in millionths of a dollar
	counted      bool
}

func (t *Tree) run(id string) *run {
	r := t.runs[id]
	if r == nil {
		r = &run{id: id, visits: map[string][]*Visit{}}
		t.runs[id] = r
	}
	return r
}

// Begun reports whether a run of the tree has any records.
func (t *Tree) Begun(executionID string) bool {
	r := t.runs[executionID]
	return r != nil && !r.began.IsZero()
}

// Open are the runs of which more records may come, the root last.
func (t *Tree) Open() []string {
	var ids []string
	for id, r := range t.runs {
		if r != t.root && r.ended.IsZero() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return append(ids, t.root.id)
}

// Programless reports whether the tree wants the program of a run: of one that has begun, once.
func (t *Tree) Programless(executionID string) bool {
	r := t.runs[executionID]
	return r == nil || !r.known
}

// Define says what a run follows, nil if that is not known: branches are then not told apart.
func (t *Tree) Define(executionID string, p *definition.Program) {
	r := t.run(executionID)
	r.program, r.known = p, true
	if p != nil && r == t.root {
		t.reserve(r)
	}
}

// reserve makes the columns wide enough for all nodes of a program, so that they stay where they are.
func (t *Tree) reserve(r *run) {
	inner := map[string]bool{}
	for _, n := range r.program.Nodes {
		if n.Parallel == nil {
			continue
		}
		for _, b := range n.Parallel.Branches {
			r.reach(b.Entry, n.Next, inner)
		}
	}
	for _, n := range r.program.Nodes {
		wide := utf8.RuneCountInString(t.clean(n.ID))
		if inner[n.ID] {
			wide += 2 * depthInBranch
		}
		if n.Map != nil {
			wide = max(wide, len("  item 100"))
		}
		t.name, t.kind = max(t.name, wide), max(t.kind, len(n.Type))
	}
}

// depthInBranch is how deep the nodes of a branch stand: under it, which stands under its block.
const depthInBranch = 2

// Visit is one visit of a node, or the work on one item of a map.
type Visit struct {
	Node   string
	Number int
	Began  time.Time
	// Ended is zero while the visit goes on.
	Ended time.Time
	// Attempt is the number of the newest attempt, 0 before the first.
	Attempt int
	// Chosen is where a switch, or the catch of a failure, leads.
	Chosen string

	node      *definition.Node
	state     state
	scripted  bool // the script of the run has ended it
	host      bool
	agent     string
	due       time.Time       // of a timer, or of the next attempt
	text      string          // what is asked, which signal is waited for, what went wrong
	steps     int             // that its attempt has recorded
	step      string          // the newest one
	work      *agentview.Work // what its agent does, nil once it has ended
	micros    int64           // what it has cost, in millionths of a dollar
	undoes    string          // the node whose work it undoes
	made      string          // the beginning of its output
	in, out   int64
	counted   bool
	join      string
	branches  []*branch
	items     *items
	child     *run
	container *sequence
}

// Made is the beginning of the visit's output, "" if it is not known yet or empty.
func (v *Visit) Made() string { return v.made }

// Took is how long the visit has taken until it ended, or until a time.
func (v *Visit) Took(now time.Time) time.Duration {
	if !v.Ended.IsZero() {
		now = v.Ended
	}
	return max(now.Sub(v.Began), 0)
}

// Item is the index of the item that the visit works on, and how many there are; zero if it works on none.
func (v *Visit) Item() (index, of int) {
	if i := v.items; i != nil && i.owner != v {
		return v.Number - i.owner.Number - 1, i.total
	}
	return 0, 0
}

// state is how a visit stands.
type state int

const (
	works state = iota
	queued
	retries  // waits for its next attempt
	timed    // waits for a time
	rests    // an attempt that waits for a time
	asks     // waits for an answer
	listens  // waits for a signal
	succeeds // has ended
	fails
	drops // was not needed, or stopped with its run
)

// items are those of a map.
type items struct {
	owner               *Visit
	total, done, failed int
	open                []*Visit
}

// branch is one branch of a parallel block.
type branch struct {
	name string
	sequence
	// nodes are those to which it can come before the join.
	nodes map[string]bool
	entry string
	state state
	ended time.Time
}

// sequence are visits one after the other.
type sequence struct {
	visits []*Visit
	// forgotten counts visits that are not kept any more.
	forgotten int
}

// maxKept is how many visits of a sequence are kept: more than a terminal has lines.
const maxKept = 300

func (s *sequence) last() *Visit {
	if len(s.visits) == 0 {
		return nil
	}
	return s.visits[len(s.visits)-1]
}

func (s *sequence) add(v *Visit) {
	v.container = s
	s.visits = append(s.visits, v)
	if len(s.visits) > 2*maxKept {
		s.forgotten += maxKept
		s.visits = slices.Clone(s.visits[maxKept:])
	}
}

// Previous is the visit before this one: of the run, or of the branch. It is nil for the first.
func (v *Visit) Previous() *Visit {
	if v.container == nil {
		return nil
	}
	if i := slices.Index(v.container.visits, v); i > 0 {
		return v.container.visits[i-1]
	}
	return nil
}

// Record takes the next record of a run, and returns the visit that it belongs to; nil if it belongs to none.
func (t *Tree) Record(executionID string, rec *history.Record) *Visit {
	return t.record(t.run(executionID), rec)
}
