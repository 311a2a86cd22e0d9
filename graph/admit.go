package graph

import (
	"context"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// admit opens a run for a call that may repeat its definition and input, and verifies both against what was recorded.
// Mismatches are problems of the given code. The machine may be older than the history: apply decides again.
//
// A run that has ended is admitted too, with x.m nil: its refusal, or its recorded outcome, is the caller's business.
//
// replays says that the call may end a run of another engine whose recorded commands the definition does not repeat, as
// a repeated start does by the protocol (spec: execution, 10.3). Any other call is refused then.
func (x *run) admit(ctx context.Context, c Caller, code problem.Code, replays bool) error {
	if x.m == nil {
		exec, err := x.r.store.Execution(ctx, x.id)
		if err != nil {
			return err
		}
		x.see(exec)
	}
	if x.exec.Phase == history.PhaseCancelled {
		return nil // said before anything else (spec: execution, 1.3, 7.2, 7.3 and 8.6)
	}
	if err := x.verifyDefinition(c, code); err != nil {
		return err
	}
	if c.InputSet {
		if err := x.verifyInput(ctx, c.Input, code); err != nil {
			return err
		}
	}
	if x.m == nil {
		x.unsaidMode = c.Mode
		unbound := x.exec.DefinitionHash == ""
		if err := x.load(ctx, x.exec, c.Definition); err != nil || !unbound {
			return err
		}
		return x.verifyFit(code, replays)
	}
	return nil
}

// verifyFit refuses a definition that a run of another engine, which has bound none, cannot have been walked with: one
// of another name, or one that does not repeat the recorded commands.
func (x *run) verifyFit(code problem.Code, replays bool) error {
	if x.m == nil {
		return nil
	}
	name := x.exec.DefinitionName
	_, failed, _ := x.m.Failure()
	if (name == "" || name == x.prog.Name) && (replays || failed != string(problem.Nondeterminism)) {
		return nil
	}
	e := problem.New(code, "the definition given does not fit what run %q has recorded", x.id).WithPlace(problem.Place{ExecutionID: x.id})
	x.forget()
	x.unstored, x.exec.DefinitionHash = nil, ""
	return e.WithHint("Send the definition that the run was started with, of the name %q.", name)
}

// verifyDefinition compares the definition's hash with that of the run.
func (x *run) verifyDefinition(c Caller, code problem.Code) error {
	bound := x.exec.DefinitionHash
	if c.Definition == nil || bound == "" || c.Definition.Hash() == bound {
		return nil
	}
	return problem.New(code, "the definition given is not the one that run %q was started with", x.id).
		WithPlace(problem.Place{ExecutionID: x.id}).
		WithHint("Leave the definition out, or send the one with hash %s.", bound)
}

// verifyInput compares an input with that of the run, by value: the order of members does not matter.
func (x *run) verifyInput(ctx context.Context, input map[string]any, code problem.Code) error {
	plain, err := x.r.object("input", input, code)
	if err != nil {
		return err
	}
	x.unsaidInput = plain
	same := hashOf(plain) == x.exec.InputHash
	if x.exec.InputHash == "" {
		if same, err = x.likeFirstState(ctx, plain); err != nil {
			return err
		}
	}
	if same {
		return nil
	}
	return problem.New(code, "the input given is not the one that run %q was started with", x.id).
		WithPlace(problem.Place{ExecutionID: x.id}).
		WithHint("Leave the input out, or send the original one.")
}

// headRecords is how many records at the head of a history surely hold ExecutionStarted and the first StateUpdated of a
// run whose entry is a start node.
const headRecords = 8

// likeFirstState compares an input with what a run of the reference engine recorded of it: the member names, and the
// first state if the start node wrote it (spec: execution, 9.6).
func (x *run) likeFirstState(ctx context.Context, input map[string]any) (bool, error) {
	records, err := x.r.store.Read(ctx, x.id, 1, headRecords)
	if err != nil {
		return false, err
	}
	entered := false
	for i := range records {
		p := &records[i].Payload
		switch records[i].Name {
		case history.ExecutionStarted:
			if p.InputKeys != nil && !sameKeys(p.InputKeys, input) {
				return false, nil
			}
		case history.CompleteNode:
			// The start node has no output; any other entry node may have changed the state already.
			entered = len(p.Output) == 0
		case history.StateUpdated:
			if !entered {
				return true, nil
			}
			for key, v := range input {
				if w, ok := p.State[key]; ok && !jsonvalue.Equal(v, w) {
					return false, nil
				}
			}
			return true, nil
		}
	}
	return true, nil
}

func sameKeys(keys []string, m map[string]any) bool {
	return len(keys) == len(m) && !slices.ContainsFunc(keys, func(k string) bool {
		_, ok := m[k]
		return !ok
	})
}
