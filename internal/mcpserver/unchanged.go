package mcpserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

const (
	// maxSeenRuns limits the runs whose answers are remembered for a session, maxSeenStates the answers of each run.
	maxSeenRuns, maxSeenStates = 32, 8
	// maxUnchanged is how many fields an answer leaves out, and names.
	maxUnchanged = 50
	// minUnchanged is the least size, in bytes, of a field that is left out.
	minUnchanged = 64
)

// maxSeenEntries limits the entries of pending that are remembered as seen by a client.
const maxSeenEntries = 512

// seenStates remembers the states and pending entries that each client has seen, so that an answer can omit the
// unchanged ones. It holds hashes, only of answers of this process; other clients get everything again.
type seenStates struct {
	mu   sync.Mutex
	runs []seenRun // the last used last
}

type seenRun struct {
	client any // session
	id     string
	states []seenState
}

type digest = [sha256.Size]byte

// seenState describes the answer with the number seq, including the parts omitted as unchanged.
type seenState struct {
	seq     int64
	state   digest            // of all of it
	members map[string]digest // of the state, if they are long
	entries map[string]digest // of pending, by their ids
}

// before returns the client's answer with the number since, nil if it is unknown or client is nil.
func (s *seenStates) before(client any, id string, since int64) *seenState {
	if client == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if r.client != client || r.id != id {
			continue
		}
		for i := range r.states {
			if r.states[i].seq == since {
				return &r.states[i]
			}
		}
	}
	return nil
}

// remember keeps an answer, which must not change from now on.
func (s *seenStates) remember(client any, id string, now seenState) {
	if client == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	run := seenRun{client: client, id: id}
	if i := slices.IndexFunc(s.runs, func(r seenRun) bool { return r.client == client && r.id == id }); i >= 0 {
		run = s.runs[i]
		s.runs = slices.Delete(s.runs, i, i+1)
	}
	run.states = append(slices.Clip(run.states), now)
	run.states = run.states[max(0, len(run.states)-maxSeenStates):]
	s.runs = append(s.runs, run)
	s.runs = s.runs[max(0, len(s.runs)-maxSeenRuns):]
}

// digests returns the digest of a state, and those of the fields that may be left out.
func digests(state map[string]any) (whole digest, members map[string]digest) {
	members = make(map[string]digest, len(state))
	all := sha256.New()
	for _, name := range jsonvalue.Keys(state) {
		text := jsonvalue.Canonical(state[name])
		own := sha256.Sum256(text)
		if len(text) >= minUnchanged {
			members[name] = own
		}
		all.Write(jsonvalue.AppendString(nil, name))
		all.Write(own[:])
	}
	return digest(all.Sum(nil)), members
}

// since returns the part of a state that was not seen before, and the names of the rest.
func (b *seenState) since(state map[string]any, members map[string]digest) (part map[string]any, unchanged []any) {
	if b == nil || len(members) > maxUnchanged {
		return state, nil
	}
	part = map[string]any{}
	for _, name := range jsonvalue.Keys(state) {
		if before, seen := b.members[name]; seen && before == members[name] {
			unchanged = append(unchanged, "/"+jsonvalue.EscapePointer(name))
		} else {
			part[name] = state[name]
		}
	}
	return part, unchanged
}

// sameState reports whether the caller has seen the state as it is.
func (t runView) sameState() bool { return t.before != nil && t.before.state == t.now.state }

// seen reports whether an entry was seen before as it is now.
func (b *seenState) seen(id string, now digest) bool {
	if b == nil {
		return false
	}
	before, seen := b.entries[id]
	return seen && before == now
}

// entryDigest hashes an entry without its countdowns and without the additions of other branches to the state.
func entryDigest(run runView, p *view.Pending) digest {
	var said members
	for _, m := range runjson.Pending(run.Run, p, nil) {
		switch m.Name {
		case "deadline_in_s", "due_in_s":
		case "state":
			if p.ExecutionID != run.ExecutionID || run.State == nil {
				said.Put(m.Name, m.Value)
			} else if own := ownState(run, p); len(own) > 0 {
				said.Put(m.Name, own)
			}
		default:
			said.Put(m.Name, m.Value)
		}
	}
	return sha256.Sum256(said.Append(nil))
}

// note compares pending with the client's earlier answer. The entry of the next call, and the node asked for, are
// always shown.
func (t *runView) note(before *seenState) {
	t.now = seenState{seq: t.Seq, entries: map[string]digest{}}
	t.now.state, t.now.members = digests(t.State)
	t.before, t.unchanged = before, map[*view.Pending]digest{}
	if before == nil || len(before.entries) == 0 || t.node != "" {
		return
	}
	subject := t.actionable()
	for _, p := range t.shown() {
		if isUnbound(p) {
			continue
		}
		now := entryDigest(*t, p)
		switch seen := before.seen(p.ID, now); {
		case seen && p == subject:
			t.again = p
		case seen:
			t.unchanged[p] = now
			t.now.entries[p.ID] = now
		}
	}
}

// runView is a run as an answer shows it.
type runView struct {
	*view.Run
	// lost is set if the definition of the run is not stored here: until a caller sends it, the run does not continue.
	lost bool
	// node limits pending to the entries of one node; "" for all.
	node string
	// asking holds the call's part in asking the person.
	asking *asking
	// before is the answer named by since_seq, nil if unknown; now is this one. unchanged are the entries that the caller
	// has seen, except again, which next is about.
	before    *seenState
	now       seenState
	unchanged map[*view.Pending]digest
	again     *view.Pending
}

// view returns a run as an answer shows it, and looks up whether the definition of an active run is stored.
func (s *server) view(ctx context.Context, a *arguments, run *view.Run) runView {
	t := runView{Run: run, asking: a.asking}
	switch {
	case run.Status.Terminal():
	case len(run.Pending) > 0:
		for i := range run.Pending {
			p := &run.Pending[i]
			t.lost = t.lost || isUnbound(p) && (p.ExecutionID == run.ExecutionID || p.ExecutionID == "")
		}
	case run.DefinitionHash == "":
		t.lost = true
	case s.opts.Definitions != nil:
		_, err := s.opts.Definitions.Definition(ctx, run.DefinitionHash)
		t.lost = errors.Is(err, problem.DefinitionNotFound)
	}
	return t
}

// isUnbound reports whether the definition of an entry's run is unknown: only an engine that knows it can name its waits.
func isUnbound(p *view.Pending) bool { return p.ID == "" }

// shown returns the entries of pending that the answer contains.
func (t runView) shown() []*view.Pending {
	list := make([]*view.Pending, 0, len(t.Pending))
	for i := range t.Pending {
		if p := &t.Pending[i]; t.node == "" || p.NodeID == t.node {
			list = append(list, p)
		}
	}
	return list
}

// awaits reports whether the run waits at a node.
func (t runView) awaits(node string) bool {
	t.node = node
	return len(t.shown()) > 0
}
