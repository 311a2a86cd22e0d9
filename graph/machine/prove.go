package machine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Prove is Replay that also compares the recorded output of each completed node, each state and the ids of subworkflows with the values that
// follow from the definition and the recorded outcomes, as JSON values. It also finds outcomes of visits that the definition does not lead
// to. It skips histories that another engine began, and records that another engine wrote (history.Record.Foreign).
func Prove(prog *definition.Program, cfg Config, records []history.Record, input map[string]any, now time.Time) (*Machine, []Difference, error) {
	c := &comparison{}
	m, err := replay(prog, cfg, records, input, now, c)
	return m, c.found, err
}

// Difference is a value in a record that does not follow from the definition and the recorded outcomes.
type Difference struct {
	// Seq, Name and NodeID are the record's.
	Seq    int64
	Name   history.Name
	NodeID string
	// Pointer is the JSON pointer of the first difference in the payload. Recorded and Derived are the values there, not Set if
	// absent. Pointer is "" for an outcome that the definition does not lead to.
	Pointer           string
	Recorded, Derived history.Optional

	derived history.Payload
}

// String describes the difference in one line. Values that look like secrets are masked.
func (d *Difference) String() string {
	of := ""
	if d.NodeID != "" {
		of = fmt.Sprintf(" of %q", d.NodeID)
	}
	if d.Pointer == "" {
		return fmt.Sprintf("record %d is %s%s, which the definition does not lead to", d.Seq, d.Name, of)
	}
	return fmt.Sprintf("record %d is %s%s with %s %s, but the definition leads to %s", d.Seq, d.Name, of,
		d.Pointer, d.shown(d.Recorded), d.shown(d.Derived))
}

// maxShown bounds a value in the text of a difference, in bytes.
const maxShown = 80

func (d *Difference) shown(v history.Optional) string {
	if !v.Set {
		return "absent"
	}
	for name := range strings.SplitSeq(d.Pointer, "/") {
		member := history.RedactValue(map[string]any{name: nil}).(map[string]any)
		if member[name] != nil {
			return history.Redacted
		}
	}
	return problem.Clip(string(jsonvalue.Canonical(history.RedactValue(v.Value))), maxShown)
}

// SetDerived sets the derived value in the record's payload.
func (d *Difference) SetDerived(p *history.Payload) {
	switch d.Name {
	case history.CompleteNode:
		p.Output = d.derived.Output
	case history.StateUpdated:
		p.State = d.derived.State
	case history.CheckpointWritten:
		p.StateRef = d.derived.StateRef
	case history.StartSubworkflow, history.CompleteSubworkflow:
		p.ChildExecutionID = d.derived.ChildExecutionID
	}
}

// DifferentResult compares a recorded ExecutionCompleted with the derived result. It returns nil if they are equal.
func DifferentResult(rec *history.Record, derived history.Optional) []Difference {
	if jsonvalue.Equal(rec.Payload.Result.Value, derived.Value) {
		return nil
	}
	d := Difference{Seq: rec.Seq, Name: rec.Name, NodeID: rec.Payload.NodeID}
	d.Pointer, d.Recorded, d.Derived = firstDifference("/result", rec.Payload.Result, derived)
	return []Difference{d}
}

// comparison compares records with those that a machine makes.
type comparison struct {
	// script holds the states and checkpoints by the number of commands before them. A command is followed by at most one of
	// each; other engines may repeat them, and then the first one counts.
	script map[scriptPlace]*history.Record
	found  []Difference
}

type scriptPlace struct {
	commands int
	name     history.Name
}

func (c *comparison) read(records []history.Record) {
	c.script = map[scriptPlace]*history.Record{}
	commands := 0
	for i := range records {
		rec := &records[i]
		if rec.Kind == history.Command {
			commands++
			continue
		}
		at := scriptPlace{commands, rec.Name}
		if rec.Name != history.StateUpdated && rec.Name != history.CheckpointWritten || c.script[at] != nil {
			continue
		}
		c.script[at] = rec
	}
}

// outcomes finds the recorded outcomes of visits that the machine has not reached by the end of the replay.
func (c *comparison) outcomes(m *Machine, records []history.Record) {
	for i := range records {
		rec := &records[i]
		if !IsOutcome(rec.Name) || rec.Payload.NodeID == "" || rec.Foreign || rec.Payload.Replayed || max(rec.Payload.Visit, 1) <= m.visitsOf(rec.Payload.NodeID) {
			continue
		}
		c.found = append(c.found, Difference{Seq: rec.Seq, Name: rec.Name, NodeID: rec.Payload.NodeID})
	}
}

// IsOutcome reports whether a record ends a wait: a fact from which a run continues.
func IsOutcome(name history.Name) bool {
	switch name {
	case history.ActivityCompleted, history.ActivityFailed, history.TimerFired, history.SignalReceived, history.InterruptResumed,
		history.SubworkflowCompleted:
		return true
	}
	return false
}

// command compares a command with the recorded one. event compares an event that follows a number of commands.
func (c *comparison) command(rec *history.Record, p *history.Payload) {
	switch rec.Name {
	case history.CompleteNode:
		c.value(rec, p, "output", rec.Payload.Output, p.Output)
	case history.StartSubworkflow, history.CompleteSubworkflow: // they are not part of the walk
		if recorded, derived := rec.Payload.ChildExecutionID, p.ChildExecutionID; recorded != derived && !rec.Foreign {
			c.found = append(c.found, Difference{
				Seq: rec.Seq, Name: rec.Name, NodeID: rec.Payload.NodeID, Pointer: "/childExecutionId",
				Recorded: history.Some(recorded), Derived: history.Some(derived), derived: *p,
			})
		}
	}
}

func (c *comparison) event(commands int, name history.Name, p *history.Payload) {
	rec := c.script[scriptPlace{commands, name}]
	if rec == nil || rec.Payload.NodeID != p.NodeID {
		return
	}
	switch name {
	case history.StateUpdated:
		c.value(rec, p, "state", rec.Payload.State, p.State)
	case history.CheckpointWritten:
		c.value(rec, p, "stateRef/state", rec.Payload.StateRef, p.StateRef)
	}
}

func (c *comparison) value(rec *history.Record, p *history.Payload, member string, recorded, derived map[string]any) {
	if rec.Foreign || jsonvalue.Equal(object(recorded), object(derived)) {
		return
	}
	d := Difference{Seq: rec.Seq, Name: rec.Name, NodeID: rec.Payload.NodeID, derived: *p}
	d.Pointer, d.Recorded, d.Derived = firstDifference("/"+member, history.Some(object(recorded)), history.Some(object(derived)))
	c.found = append(c.found, d)
}

// firstDifference returns the pointer of the first part that differs between two values, and the two parts.
func firstDifference(at string, a, b history.Optional) (string, history.Optional, history.Optional) {
	switch x := a.Value.(type) {
	case map[string]any:
		y, ok := b.Value.(map[string]any)
		if !ok {
			break
		}
		names := slices.Sorted(maps.Keys(x))
		for name := range y {
			if _, ok := x[name]; !ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			p, inA := x[name]
			q, inB := y[name]
			if !inA || !inB || !jsonvalue.Equal(p, q) {
				return firstDifference(at+"/"+jsonvalue.EscapePointer(name), history.Optional{Set: inA, Value: p}, history.Optional{Set: inB, Value: q})
			}
		}
	case []any:
		y, ok := b.Value.([]any)
		if !ok {
			break
		}
		for i := range max(len(x), len(y)) {
			var p, q history.Optional
			if i < len(x) {
				p = history.Some(x[i])
			}
			if i < len(y) {
				q = history.Some(y[i])
			}
			if !p.Set || !q.Set || !jsonvalue.Equal(p.Value, q.Value) {
				return firstDifference(at+"/"+strconv.Itoa(i), p, q)
			}
		}
	}
	return at, a, b
}
