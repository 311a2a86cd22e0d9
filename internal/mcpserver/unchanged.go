package mcpserver

import (
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const (
	// maxSeenRuns is of how many runs a session's answers are remembered, maxSeenStates how many of each.
	maxSeenRuns, maxSeenStates = 32, 8
	// maxUnchanged is how many members an answer leaves out, and names.
	maxUnchanged = 50
	// minUnchanged is how long the text of a member is that is left out.
	minUnchanged = 64
)

// seenStates remembers which states a client has seen, so that an answer can leave out what has not changed since. It holds hashes
// alone, and only of what this process has answered: to a client that has seen more, the whole is told once more.
type seenStates struct {
	mu   sync.Mutex
	runs []seenRun // the last used last
}

type seenRun struct {
	client any // session
	id     string
	states []seenState
}

type seenState struct {
	seq     int64
	members map[string][sha256.Size]byte
}

// since returns the part of a state that a client has not seen in its answer with the number since, and the names of the rest; and
// remembers that it sees this one with seq. Of a client that is nil nothing is known.
func (s *seenStates) since(client any, id string, since, seq int64, state map[string]any) (part map[string]any, unchanged []any) {
	if client == nil {
		return state, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.runs, func(r seenRun) bool { return r.client == client && r.id == id })
	run := seenRun{client: client, id: id}
	if i >= 0 {
		run = s.runs[i]
		s.runs = slices.Delete(s.runs, i, i+1)
	}
	now := seenState{seq, make(map[string][sha256.Size]byte, len(state))}
	for name, v := range state {
		if text := jsonvalue.Canonical(v); len(text) >= minUnchanged {
			now.members[name] = sha256.Sum256(text)
		}
	}
	part = state
	if i := slices.IndexFunc(run.states, func(before seenState) bool { return before.seq == since }); i >= 0 && len(now.members) <= maxUnchanged {
		part = map[string]any{}
		for _, name := range jsonvalue.Keys(state) {
			if before, seen := run.states[i].members[name]; seen && before == now.members[name] {
				unchanged = append(unchanged, "/"+jsonvalue.EscapePointer(name))
			} else {
				part[name] = state[name]
			}
		}
	}
	run.states = append(run.states, now)
	run.states = run.states[max(0, len(run.states)-maxSeenStates):]
	s.runs = append(s.runs, run)
	s.runs = s.runs[max(0, len(s.runs)-maxSeenRuns):]
	return part, unchanged
}
