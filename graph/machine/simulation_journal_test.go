package machine_test

import (
	"fmt"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// record lets the executor of an attempt record steps, ask or rest. It reports whether it has done so.
func (s *schedule) record(wait machine.Wait) bool {
	if wait.Kind != machine.WaitActivity && wait.Kind != machine.WaitDelegate || wait.Host || wait.Queued || wait.Task != nil {
		return false
	}
	in := machine.StepsRecorded{Key: wait.Key}
	if j := wait.Journal; j != nil {
		in.Index = j.Count
	}
	if in.Index > 8 {
		return false
	}
	for i := range s.more.IntN(3) {
		in.Steps = append(in.Steps, machine.Step{Key: fmt.Sprintf("t%d", in.Index+i+1), Kind: "made", Body: object{"of": wait.Key}, Totals: object{"n": float64(in.Index + i)}})
	}
	switch s.more.IntN(4) {
	case 0:
		q := &machine.Question{Key: fmt.Sprintf("q%d", in.Index), Prompt: "?", Schema: object{"required": []any{"ok"}}}
		if s.more.IntN(2) == 0 {
			q.Expires, q.Otherwise = s.now.Add(time.Second), object{"ok": false}
		}
		in.Question = q
	case 1:
		in.Until = s.now.Add(time.Duration(s.more.IntN(3)) * time.Second)
	default:
		if len(in.Steps) == 0 {
			return false
		}
	}
	s.refuse("out of order", machine.StepsRecorded{Key: in.Key, Index: in.Index + 9, Steps: []machine.Step{{Key: "x", Kind: "made"}}})
	s.give(in)
	return true
}

// asked answers the question of an executor, or lets it expire. It reports whether the wait was for one.
func (s *schedule) asked(wait machine.Wait) bool {
	if wait.Kind != machine.WaitInterrupt || wait.Journal == nil {
		return false
	}
	q := wait.Journal.Question
	attempt := wait.Key[:len(wait.Key)-len(q.Key)-1]
	if !wait.Deadline.IsZero() && !s.now.Before(wait.Deadline) {
		s.give(machine.TimerFired{Key: "deadline:" + attempt})
		return true
	}
	if !q.Expires.IsZero() && (s.more.IntN(2) == 0 || !s.now.Before(q.Expires)) {
		if q.Expires.After(s.now) {
			s.now = q.Expires
		}
		s.refuse("too late", machine.Resume{Key: wait.Key, Payload: object{"ok": true}})
		s.give(machine.TimerFired{Key: "rest:" + wait.Key})
		return true
	}
	s.refuse("against the schema", machine.Resume{Key: wait.Key, Payload: object{"yes": true}})
	s.give(machine.Resume{Key: wait.Key, Payload: object{"ok": true}})
	return true
}

// stepped counts a recorded step, and expects the effects anew that follow a rest.
func (s *schedule) stepped(r *history.Record) {
	step, n, _ := machine.StepOf(r)
	p := &r.Payload
	key := fmt.Sprintf("%s#%d.%d", p.NodeID, max(p.Visit, 1), max(p.Attempt, 1))
	if s.steps[key]++; n != s.steps[key] {
		s.fatalf("step %s of %s has the number %d, want %d", step.Key, key, n, s.steps[key])
	}
	switch step.Kind {
	case machine.StepAnswer:
		delete(s.effects, "turn:"+key)
	case machine.StepWoken:
		delete(s.effects, key)
		s.woken++
	}
}
