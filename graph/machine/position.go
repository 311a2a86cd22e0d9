package machine

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsondelta"
)

// positionVersion is the newest version of the stored form. A position has the lowest version that can express it: 3 by default, 4 with
// attempts that wait for their turn, 5 within a walk, 6 within a map, 7 with rounds of a loop, kept signals or visits to undo, 8 with journal
// entries, 9 with a deadline of the run or of a visit. Versions 1, with the whole views of branches, and 2, without repairs, are read too. Positions of other versions are ignored: a
// position only saves reading the history.
const (
	positionVersion         = 3
	queuedPositionVersion   = 4
	walkingPositionVersion  = 5
	mapPositionVersion      = 6
	extendedPositionVersion = 7
	journalPositionVersion  = 8
	deadlinePositionVersion = 9
)

// position is the stored form of a machine.
type position struct {
	Version     int       `json:"v"`
	Config      Config    `json:"config"`
	Hash        string    `json:"hash"`
	Now         time.Time `json:"now"`
	Seq         int64     `json:"seq"`
	Commands    int       `json:"commands"`
	Steps       int       `json:"steps"`
	Checkpoints int       `json:"checkpoints,omitempty"`
	Resumed     bool      `json:"resumed,omitempty"`
	// Bytes is the size of the history when the position was made; see Machine.SetBytes.
	Bytes      int64    `json:"bytes,omitempty"`
	SignalKeys []string `json:"signalKeys,omitempty"`
	// Kept are signals that no wait has taken.
	Kept []keptSignal `json:"kept,omitempty"`
	// Partial are the nodes with a partial output.
	Partial map[string]string `json:"partial,omitempty"`
	// Visited has a bit for each node, by its index; Visits counts the visits of nodes visited more than once. So the size does not grow with
	// the length of a run.
	Visited []byte      `json:"visited"`
	Visits  map[int]int `json:"visits,omitempty"`
	// StateSeq is the seq of the StateUpdated with the main path's state; 0 means that Main.View holds the state.
	StateSeq int64         `json:"stateSeq,omitempty"`
	Main     tokenPosition `json:"main"`
	// Deadline is that of the run.
	Deadline time.Time `json:"deadline,omitzero"`
}

type tokenPosition struct {
	Phase phase          `json:"phase,omitempty"`
	Node  string         `json:"node,omitempty"`
	Visit int            `json:"visit,omitempty"`
	View  map[string]any `json:"view,omitempty"`
	// Written are names of fields of the view; see token. Positions of older releases lack them; the whole state is shown then.
	Written []string `json:"written,omitempty"`
	Same    bool     `json:"same,omitempty"` // the view is that of the block's owner
	// Changes turn the view of the block's owner into the view; see package jsondelta.
	Changes map[string]any `json:"changes,omitempty"`
	Held    []item         `json:"held,omitempty"`
	Wait    *wait          `json:"wait,omitempty"`
	Inner   *blockPosition `json:"inner,omitempty"`
	Rounds  map[string]int `json:"rounds,omitempty"`
	Failure *failure       `json:"failure,omitempty"`
	// Limit is the deadline of the visit.
	Limit time.Time `json:"limit,omitzero"`
	// Done lists the visits of the token that can be undone; Rollback is the progress of undoing them.
	Done     []undo    `json:"done,omitempty"`
	Rollback *rollback `json:"rollback,omitempty"`
}

// itemsPosition is the stored form of a map. Its tokens are the items in progress; the items are evaluated again.
type itemsPosition struct {
	Clock   time.Time      `json:"clock"`
	Base    int            `json:"base"`
	Next    int            `json:"next"`
	Last    int            `json:"last,omitempty"`
	Working []int          `json:"working"`
	Ended   []itemPosition `json:"ended"`
}

type itemPosition struct {
	Index   int      `json:"i"`
	Output  any      `json:"output,omitempty"`
	Failure *failure `json:"failure,omitempty"`
}

type blockPosition struct {
	Node     string          `json:"node"`
	Head     int             `json:"head"`
	FailFast bool            `json:"failFast,omitempty"`
	Deadline time.Time       `json:"deadline,omitzero"`
	Tokens   []tokenPosition `json:"tokens"`
	Items    *itemsPosition  `json:"items,omitempty"`
}

// smallPosition is the largest position, in bytes, whose successor is always stored.
const smallPosition = 4 << 10

// positioned holds the size of the newest stored position, and the size of the history when it was made.
type positioned struct {
	size int
	at   int64
}

// NextPosition returns the position to store with the records that Ready has returned, or nil. Positions within a large map or rollback contain
// all outputs, so the next one is stored once the history has grown by the size of the last one. Positions together then take about as much
// space as the records, and a restart reads no more records than position, in bytes.
func (m *Machine) NextPosition() []byte {
	if m.positioned.size > smallPosition && m.bytes-m.positioned.at < int64(m.positioned.size) {
		return nil
	}
	data := m.Position()
	if data != nil {
		m.positioned = positioned{size: len(data), at: m.bytes}
	}
	return data
}

// Position returns the stored form of the machine. It returns nil for a run that has ended, while large signals are kept, and within a walk
// that has left branches, which are recorded at its end. Call it after Ready: results that Ready has not returned are not part of it.
func (m *Machine) Position() []byte {
	if m.status.Terminal() || m.recorded != nil || len(m.left) > 0 || m.keptBytes() > maxPositionSignals {
		return nil
	}
	p := position{
		Version: positionVersion, Config: m.cfg, Hash: m.prog.Hash, Now: m.now, Seq: m.seq,
		Commands: m.commands, Steps: m.steps, Checkpoints: m.checkpoints, Resumed: m.resumed, SignalKeys: m.signalKeys,
		Bytes: m.bytes, Kept: m.kept, Partial: m.partials,
	}
	p.Visited, p.Visits = packVisits(m.visits)
	if m.find(func(t *token) bool { return t.wait.recorded().Queued }) != nil {
		p.Version = queuedPositionVersion
	}
	if m.Walking() {
		p.Version = walkingPositionVersion
	}
	for t := range m.living {
		if b := t.inner; b != nil && b.items != nil {
			p.Version = mapPositionVersion
		}
	}
	if m.remembers() || len(m.kept) > 0 || m.find(func(t *token) bool { return len(t.rounds) > 0 }) != nil {
		p.Version = extendedPositionVersion
	}
	if m.find(func(t *token) bool { return t.wait.Journal != nil }) != nil {
		p.Version = journalPositionVersion
	}
	limited := false
	for t := range m.living {
		limited = limited || !t.limit.IsZero()
	}
	if p.Deadline = m.deadline; limited || !m.deadline.IsZero() {
		p.Version = deadlinePositionVersion
	}
	p.Main = m.main.position(m.cfg.ExecutionID)
	if m.stateSeq > 0 && sameMap(m.stateAt, m.main.view) {
		p.StateSeq, p.Main.View = m.stateSeq, nil
	}
	data, err := json.Marshal(p)
	if err != nil {
		return nil // a position is optional
	}
	return data
}

func packVisits(visits []int) (visited []byte, more map[int]int) {
	visited = make([]byte, (len(visits)+7)/8)
	for i, n := range visits {
		if n == 0 {
			continue
		}
		visited[i/8] |= 1 << (i % 8)
		if n > 1 {
			if more == nil {
				more = map[int]int{}
			}
			more[i] = n
		}
	}
	return visited, more
}

func unpackVisits(visits []int, visited []byte, more map[int]int) {
	for i := range visits {
		if i/8 < len(visited) && visited[i/8]&(1<<(i%8)) != 0 {
			visits[i] = max(more[i], 1)
		}
	}
}

// sameMap reports whether two maps are the same map. States are never changed in place, so the same map is the same state.
func sameMap(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

func (t *token) position(executionID string) tokenPosition {
	p := tokenPosition{
		Phase: t.phase, Visit: t.visit, View: t.view, Wait: t.wait.recorded(), Failure: t.failure,
		Rounds: t.rounds, Done: t.done, Rollback: t.rollback, Written: t.written, Limit: t.limit,
	}
	if t.node != nil {
		p.Node = t.node.ID
	}
	if t.item() {
		p.View = nil // it is derived from the item
	} else if t.block != nil && sameMap(t.view, t.block.owner.view) {
		p.View, p.Same = nil, true
	} else if t.block != nil && len(t.view) > 0 {
		if p.Changes = jsondelta.Diff(t.block.owner.view, t.view); len(p.Changes) == 0 {
			p.Same = true
		}
		p.View = nil
	}
	for _, it := range t.held {
		if it.Name != "" {
			rec := history.Record{Kind: it.Kind, Name: it.Name, Payload: it.Payload}
			it.Stored = rec.AppendPayload(nil, executionID)
		}
		p.Held = append(p.Held, it)
	}
	if b := t.inner; b != nil {
		p.Inner = &blockPosition{Node: b.node.ID, Head: b.head, FailFast: b.failFast, Deadline: b.deadline, Items: b.items.position(b.tokens)}
		for _, c := range b.tokens {
			p.Inner.Tokens = append(p.Inner.Tokens, c.position(executionID))
		}
	}
	return p
}

// PositionStateSeq returns the seq of the StateUpdated record whose state Restore needs, or 0.
func PositionStateSeq(data []byte) int64 {
	var p struct {
		StateSeq int64 `json:"stateSeq"`
	}
	if json.Unmarshal(data, &p) != nil {
		return 0
	}
	return p.StateSeq
}

// Restore rebuilds a machine from a stored position. state is the state of the StateUpdated record at PositionStateSeq, nil
// if that is 0. A position that cannot be used (another version, another definition) is an error with code HISTORY_CORRUPT;
// use Replay then.
func Restore(prog *definition.Program, data []byte, state map[string]any) (*Machine, error) {
	var p position
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, problem.New(problem.HistoryCorrupt, "the stored position cannot be read").WithCause(err)
	}
	if p.Version < 1 || p.Version > deadlinePositionVersion || p.Hash != prog.Hash {
		return nil, problem.New(problem.HistoryCorrupt, "the stored position has version %d and definition %s", p.Version, p.Hash)
	}
	m := newMachine(prog, p.Config)
	m.now, m.seq, m.commands, m.steps = p.Now, p.Seq, p.Commands, p.Steps
	m.checkpoints, m.resumed, m.stateSeq, m.signalKeys, m.kept, m.partials = p.Checkpoints, p.Resumed, p.StateSeq, p.SignalKeys, p.Kept, p.Partial
	m.deadline = p.Deadline
	m.bytes, m.positioned = p.Bytes, positioned{size: len(data), at: p.Bytes}
	unpackVisits(m.visits, p.Visited, p.Visits)
	if p.StateSeq > 0 {
		p.Main.View = state
		m.stateAt = state
	}
	if err := m.restore(m.main, &p.Main); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Machine) restore(t *token, p *tokenPosition) error {
	missing := func(id string) error {
		return problem.New(problem.HistoryCorrupt, "the stored position names node %q, which is not in the definition", id)
	}
	t.phase, t.visit, t.view, t.unchecked, t.written = p.Phase, p.Visit, p.View, true, p.Written
	t.wait, t.failure, t.rounds, t.done, t.rollback, t.limit = p.Wait, p.Failure, p.Rounds, p.Done, p.Rollback, p.Limit
	if p.Node != "" {
		if t.node = m.prog.Node(p.Node); t.node == nil {
			return missing(p.Node)
		}
	}
	if err := t.fits(p.Inner); err != nil {
		return err
	}
	if !m.validRounds(t) {
		return problem.New(problem.HistoryCorrupt, "the stored position does not fit the loops")
	}
	if err := m.fitsRollback(t); err != nil {
		return err
	}
	switch {
	case p.Same && t.block != nil:
		t.view = t.block.owner.view
	case p.Changes != nil && t.block != nil:
		view, err := jsondelta.Apply(t.block.owner.view, p.Changes)
		if err != nil {
			return err
		}
		t.view = view
	}
	if t.view == nil && t.phase != idle {
		t.view = map[string]any{}
	}
	for _, it := range p.Held {
		if it.Name != "" {
			var err error
			if it.Payload, err = history.DecodePayload(it.Name, it.Stored); err != nil {
				return problem.New(problem.HistoryCorrupt, "the stored position cannot be read").WithCause(err)
			}
			it.Stored = nil
		}
		t.held = append(t.held, it)
	}
	if t.wait != nil && t.wait.counts() {
		m.open++
	}
	if t.wait != nil && t.wait.Kind == waitWalk {
		m.pace.at = t
	}
	if p.Inner == nil {
		return nil
	}
	b := &block{owner: t, node: t.node, visit: t.visit, head: p.Inner.Head, failFast: p.Inner.FailFast, deadline: p.Inner.Deadline}
	t.inner = b
	if p.Inner.Items != nil {
		return m.restoreItems(b, p.Inner)
	}
	for i := range p.Inner.Tokens {
		c := &token{block: b, index: i}
		b.tokens = append(b.tokens, c)
		if err := m.restore(c, &p.Inner.Tokens[i]); err != nil {
			return err
		}
	}
	return nil
}
