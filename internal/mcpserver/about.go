package mcpserver

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/outline"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// stateShare limits a state that does not fit as a whole to this fraction of the answer, because every answer repeats it.
const stateShare = 4

// answered returns the answer about a run. content holds its fields except pending and next.
func (s *server) answered(headline string, content members, run runView, a *arguments) *answer {
	remembers := a.answerBytes() != FullAnswers && a.client != nil
	if remembers {
		run.note(s.seen.before(a.client, run.ExecutionID, a.since))
	}
	ans := &answer{headline: headline, lines: s.inShort(run), content: s.about(content, run, a.answerBytes())}
	if remembers {
		s.seen.remember(a.client, run.ExecutionID, run.now)
	}
	return ans
}

// about adds pending, next and the state of a run to content, within a number of bytes. The host's task comes first,
// whole if it fits, then the result, then the state.
func (s *server) about(content members, run runView, bytes int) members {
	if bytes == FullAnswers {
		entries, cut := allEntries(run)
		return s.withPending(content, run, entries, nil, cut)
	}
	if run.Result != nil && jsonvalue.Equal(run.Result, run.FinalState) {
		content = without(content, "final_state")
	}
	content = leaveOutSeen(content, run)
	var task []*slot
	if first := runjson.First(run.Run); first != nil {
		task = slotsOf(&content, s.waitDocument(first), "delegate_input")
	}
	values := append(slotsOf(&content, s.runDocument(run.ExecutionID, resultSuffix), "result"),
		slotsOf(&content, s.runDocument(run.ExecutionID, stateSuffix), "state", "final_state")...)
	for _, v := range values {
		v.at, v.share = "", max(bytes/stateShare, reserved)
	}
	names, cut := unchangedNames(run, bytes/8)
	room := bytes - len(s.withPending(content, run, []members{{}}, names, true).Append(nil)) - least(values)
	rest, _ := fill(task, room-2*reserved)
	entries, some := s.entries(run, rest+2*reserved)
	content = s.withPending(content, run, entries, names, cut || some)
	fill(values, bytes-len(content.Append(nil)))
	return content
}

// leaveOutSeen removes everything that has not changed since the answer named by since_seq.
func leaveOutSeen(content members, run runView) members {
	first := runjson.First(run.Run)
	if _, unchanged := run.unchanged[first]; unchanged && jsonvalue.Size(first.DelegateInput, minUnchanged) > minUnchanged {
		content = without(content, "delegate_input")
	}
	i := indexOf(content, "state")
	if i < 0 {
		return content
	}
	state, _ := content[i].Value.(map[string]any)
	part, unchanged := run.before.since(state, run.now.members)
	switch {
	case len(unchanged) == 0:
		return content
	case len(part) == 0:
		content = without(content, "state")
	default:
		content[i].Value = part
	}
	content.Put("unchanged", unchanged)
	return content
}

// unchangedNames returns the names of the unchanged entries, without the run's id, in at most room bytes. cut reports
// that some do not fit.
func unchangedNames(run runView, room int) (names []any, cut bool) {
	for _, p := range run.shown() {
		if _, ok := run.unchanged[p]; !ok {
			continue
		}
		name := strings.TrimPrefix(cmp.Or(p.IdempotencyKey, p.ID), run.ExecutionID+":")
		if room -= len(name) + len(`"",`); room < 0 {
			return names, true
		}
		names = append(names, name)
	}
	return names, false
}

// withPending adds the shown entries of pending, the names of the unchanged ones, and the next call. cut reports that
// entries are missing.
func (s *server) withPending(content members, run runView, entries []members, unchanged []any, cut bool) members {
	content = content[:len(content):len(content)]
	if run.Status.Terminal() {
		if again, ok := s.again(run.Run); ok {
			content.Put("next", again.members())
		}
		return content
	}
	if len(entries) > 0 {
		content.Put("pending", entries)
	}
	if len(unchanged) > 0 {
		content.Put("pending_unchanged", unchanged)
	}
	if len(run.Pending) > 0 && (cut || len(unchanged) > 0 || run.node != "") {
		content.Put("pending_total", float64(len(run.Pending)))
	}
	content.Put("next", s.next(run).members())
	return content
}

// maxFull is how many entries of pending are described in full. The answer after them describes the next ones.
const maxFull = 8

// allEntries returns all entries of pending, the first in full.
func allEntries(run runView) (entries []members, cut bool) {
	first, next := runjson.First(run.Run), run.actionable()
	for i, p := range run.shown() {
		if i < maxFull || p == first || p == next {
			entries = append(entries, runjson.Pending(run.Run, p, first))
		} else {
			entries, cut = append(entries, runjson.Brief(run.Run, p)), true
		}
	}
	return entries, cut
}

// entries returns pending in its order, in a number of bytes: the entry of the next call in full, the others in full or
// in brief as far as they fit.
func (s *server) entries(run runView, room int) (entries []members, cut bool) {
	shown := slices.DeleteFunc(run.shown(), func(p *view.Pending) bool { _, unchanged := run.unchanged[p]; return unchanged })
	if len(shown) == 0 {
		return nil, false
	}
	subject := cmp.Or(run.actionable(), runjson.First(run.Run))
	if run.node != "" && subject.NodeID != run.node {
		subject = shown[0]
	}
	var kept []*view.Pending
	brief := room / 2 // for the others
	for _, p := range shown {
		e := runjson.Brief(run.Run, p)
		size := len(e.Append(nil)) + len(",")
		if p != subject {
			if brief < size {
				cut = true
				continue
			}
			brief -= size
		}
		kept, entries, room = append(kept, p), append(entries, e), room-size
	}
	full := 0
	describe := func(i int) {
		size := len(entries[i].Append(nil))
		e, whole := s.entry(run, kept[i], room+size)
		if kept[i] != subject && (!whole || len(e.Append(nil)) > room+size || full >= maxFull) {
			cut = true
			return
		}
		entries[i], room, full = e, room+size-len(e.Append(nil)), full+1
		if run.now.entries != nil && len(run.now.entries) < maxSeenEntries && !isUnbound(kept[i]) {
			run.now.entries[kept[i].ID] = entryDigest(run, kept[i])
		}
	}
	for i, p := range kept {
		if p == subject {
			describe(i)
		}
	}
	for i, p := range kept {
		if p != subject {
			describe(i)
		}
	}
	return entries, cut
}

// entry returns one entry of pending in at most room bytes. whole reports that the task in it is complete.
func (s *server) entry(run runView, p *view.Pending, room int) (entry members, whole bool) {
	first := runjson.First(run.Run)
	entry = runjson.Pending(run.Run, p, first)
	if p == run.again { // its branch and state are unchanged
		entry = without(entry, "parallel_span")
		if len(ownState(run, p)) == 0 {
			entry = without(entry, "state")
		}
	}
	in := s.waitDocument(p)
	allCalls := s.putCalls(&entry, p, room/2)
	if text := shownText(p, room/4); text != "" {
		entry.Put("shown", text)
	}
	task := slotsOf(&entry, in, "config", "delegate_input", "prompt", "show", "output_schema", "resume_schema")
	var state []*slot
	if i := indexOf(entry, "state"); i >= 0 {
		state = []*slot{s.branchState(run, p, &entry, i)}
	}
	room -= len(entry.Append(nil)) + least(state)
	rest, whole := fill(task, room)
	fill(state, rest+least(state))
	return entry, whole && allCalls
}

// branchState replaces the state of a branch in its entry by its difference from the run's state.
func (s *server) branchState(run runView, p *view.Pending, entry *members, index int) *slot {
	in, at := s.waitDocument(p), "/state"
	if p.ExecutionID != run.ExecutionID || run.State == nil {
		return slotOf(entry, index, in, at)
	}
	changed, removed := ownState(run, p), []any{}
	for _, name := range jsonvalue.Keys(run.State) {
		if _, ok := p.State[name]; !ok {
			removed = append(removed, name)
		}
	}
	difference := members{{"$ref", s.runDocument(run.ExecutionID, stateSuffix).URI}, {"changed", changed}}
	if len(removed) > 0 {
		difference.Put("removed", removed[:min(len(removed), maxRemoved)])
	}
	if len(removed) > maxRemoved {
		difference.Put("removed_total", float64(len(removed)))
	}
	(*entry)[index].Value = difference
	sl := slotOf(&difference, 1, in, at)
	sl.share = reserved
	return sl
}

// ownState returns the part of the state that only this entry can see: the item of a map, the output to compensate, the
// additions of its branch.
func ownState(run runView, p *view.Pending) map[string]any {
	own := map[string]any{}
	for name, v := range p.State {
		if before, ok := run.State[name]; !ok || !jsonvalue.Equal(before, v) {
			own[name] = v
		}
	}
	return own
}

// maxRemoved is how many fields of the run's state that a branch does not see its entry names: they are those that other branches
// have added.
const maxRemoved = 5

// waitDocument returns an entry of pending as a resource.
func (s *server) waitDocument(p *view.Pending) outline.Document {
	return s.runDocument(p.ExecutionID, waitSuffix+url.PathEscape(p.ID))
}

// runDocument returns a part of a run as a resource.
func (s *server) runDocument(executionID, suffix string) outline.Document {
	return outline.Document{URI: runPrefix + url.PathEscape(executionID) + suffix, Hide: s.opts.Redaction.String}
}
