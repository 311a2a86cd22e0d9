package agentloop

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
)

// room is how an agent makes room for its next request: old results shrink to previews, then a model sums up old turns, or, if that fails,
// they are left out. It does so at most once before a turn, and once more when the model refuses the conversation.
type room struct {
	stage roomStage
	// count is how many compactions are recorded.
	count int
	// urgent says that the model has refused the conversation in this turn.
	urgent bool
	// refusedAt is with how many tokens the current model has refused it, 0 for never.
	refusedAt int

	// The request for a summary; req is nil without one.
	req           *chat.Request
	hash          string
	model         *Model
	try, attempts int
	upto          int
	// failed says that there will be no summary.
	failed bool
}

// roomStage is the progress of a compaction before a turn.
type roomStage int

const (
	roomNone roomStage = iota
	roomShrunk
	roomCut
)

// key is the key of the next compaction, without that of the agent.
func (r *room) key() string { return "k" + itoa(r.count+1) }

func (a *agent) roomKey() string { return a.prefix + a.room.key() }

// leave gives a summary up that is not there yet.
func (r *room) leave() {
	if r.req != nil || r.failed {
		r.req, r.failed, r.stage = nil, false, roomCut
	}
}

// A compaction must save an eighth of the allowed size: smaller ones would change the request, and break the provider's cache, at each turn.
// It is done when four fifths of the allowed size are used.
const (
	worthwhile  = 8
	enoughParts = 5
	// leastCut is larger than the note that replaces removed messages without a summary, in bytes.
	leastCut = 600
)

// plan is a way to shrink a conversation that is too large. Turns are counted from the oldest one left.
type plan struct {
	// shrink is the number of turns whose results can shrink, cut the number of turns that can be summed up.
	shrink, cut int
	// over says that the conversation is too large, enough that it need not become smaller.
	over, enough bool
}

// limit is how many tokens the current model takes, as it is configured or as its refusal has shown; 0 if that is unknown.
func (a *agent) limit() int {
	limit := a.cfg.Models[a.model].ContextTokens
	if r := a.room.refusedAt; r > 0 && (limit == 0 || r < limit) {
		limit = r
	}
	return limit
}

func (a *agent) plan(limit int, urgent bool) (p plan) {
	if limit == 0 {
		return p
	}
	model := &a.cfg.Models[a.model]
	answer := model.MaxTokens
	if a.raised {
		answer = model.MaxTokensCeiling
	}
	most := int(a.cfg.Compaction.Threshold * float64(limit))
	most = max(most-answer, most/2)
	prompt := max(a.prompt(), 1)
	if p.over, p.enough = prompt > most, prompt <= most-most/enoughParts; !p.over && p.enough {
		return p
	}
	t := &a.talk
	bytes := int(float64(t.bytes) * (float64(most) / float64(prompt))) // of a conversation that is just small enough
	kept := a.kept(bytes / 2)
	saved := 0
	for i := range t.from(len(t.turns) - kept) {
		if t.parts[i].brief != "" {
			saved += len(t.messages[i].Text) - len(t.parts[i].brief)
		}
	}
	if saved > 0 && (urgent || saved >= bytes/worthwhile) {
		p.shrink = len(t.turns) - kept
	}
	cut := len(t.turns) - max(kept, 1)
	if cut <= 0 {
		return p
	}
	old := t.before(cut)
	if urgent && old > leastCut || old >= max(bytes/worthwhile, leastCut) {
		p.cut = cut
	}
	return p
}

// kept is how many of the newest turns stay as they are: as many as the configuration says and have room.
func (a *agent) kept(bytes int) int {
	t := &a.talk
	kept, size, end := 0, 0, len(t.messages)
	for kept < min(a.cfg.Compaction.KeepTurns, len(t.turns)) {
		from := t.from(len(t.turns) - kept - 1)
		for i := from; i < end; i++ {
			size += t.parts[i].bytes
		}
		if size > bytes {
			break
		}
		end = from
		kept++
	}
	return kept
}

// canCompact reports whether the model may be asked once more, with less, after it has refused the conversation.
func (a *agent) canCompact() bool {
	limit := a.limit()
	if p := a.prompt(); limit == 0 || p < limit {
		limit = p
	}
	p := a.plan(limit, true)
	return !a.room.urgent && (p.shrink > 0 || p.cut > 0)
}

// refused notes that the model has refused the conversation.
func (a *agent) refused() {
	a.room.refusedAt = max(a.prompt(), 1)
	a.room.urgent, a.room.stage = true, roomNone
	a.again, a.req, a.phase = true, nil, ready
}

// makeRoom does the next thing that has to be done before the model is asked, and reports whether there was any.
func (a *agent) makeRoom() bool {
	r := &a.room
	if compacts, recorded := a.recordedNext(); recorded {
		if compacts {
			a.phase = following
		}
		return compacts
	}
	if r.stage == roomCut {
		return false
	}
	p := a.plan(a.limit(), r.urgent)
	switch {
	case r.failed && p.cut > 0:
		a.m.emit(a.roomKey(), StepCompacted, body{"upto": a.upto(p.cut), "dropped": float64(p.cut)})
	case r.failed:
		r.leave()
		return false
	case p.over && p.shrink > 0 && r.stage == roomNone:
		a.m.emit(a.roomKey(), StepCompacted, body{"upto": a.upto(p.shrink), "shrunk": float64(p.shrink)})
	case p.cut > 0 && (p.over || r.stage == roomShrunk && !p.enough):
		a.sumUp(p.cut)
	default:
		return false
	}
	return true
}

// upto is the key of the last of so many turns.
func (a *agent) upto(turns int) string { return "t" + itoa(a.talk.turns[turns-1].turn) }

// recordedNext reports whether the next step of the agent is of a compaction, if it is recorded in a journal of another wording: such a
// journal is followed to its end, since its texts have other sizes.
func (a *agent) recordedNext() (compacts, recorded bool) {
	if a.m.wording == wording {
		return false, false
	}
	expired := false
	for i := range a.m.ahead {
		s := &a.m.ahead[i]
		own, ok := strings.CutPrefix(s.Key, a.prefix)
		switch {
		case asksForCurrent(s):
			return false, true // another configuration follows
		case decisionOf(s) == decidedExpired:
			if a == a.m.root && !a.again && own == "t"+itoa(a.turn+1) { // its key is the root's turn: that turn had been asked
				return false, true
			}
			expired = true
		case !ok || strings.ContainsAny(own, "./") || own == listKey || s.Kind != StepReply && s.Kind != StepTried && s.Kind != StepCompacted:
		case expired && own == "t"+itoa(a.turn+1): // the time had ended before that turn was asked: while a model summed up
			return !a.again, true
		default:
			return strings.HasPrefix(own, "k"), true
		}
	}
	return false, len(a.m.ahead) > len(a.m.steps)
}

// asksForCurrent reports whether a step asks for the current configuration.
func asksForCurrent(s *Step) bool {
	e, ok := agentsteps.Read(s.Kind, s.Body).(*agentsteps.Resumed)
	return ok && e.Current
}

// makesRoom takes a step of a compaction.
func (a *agent) makesRoom(entry any) error {
	asked := a.room.req != nil && (a.phase == summing || a.phase == pausing)
	if !asked && a.phase != ready && a.phase != following {
		return errors.New("nothing is to be compacted")
	}
	switch e := entry.(type) {
	case *agentsteps.Tried:
		if a.phase != ready {
			return a.unsummed(e)
		}
	case *agentsteps.Compacted:
		return a.compacted(e, asked)
	}
	return errNotAwaited
}

// compacted takes a compaction. asked is set while a summary is awaited.
func (a *agent) compacted(e *agentsteps.Compacted, asked bool) error {
	r := &a.room
	if asked && a.m.wording == wording && (e.RequestHash != r.hash || e.Try != r.try || e.UpTo != "t"+itoa(r.upto)) {
		return errors.New("it answers another request than the one that follows from the steps")
	}
	upto, err := strconv.Atoi(strings.TrimPrefix(e.UpTo, "t"))
	if err != nil {
		return errors.New("its \"upto\" is not a turn")
	}
	t := &a.talk
	turns := 0
	for turns < len(t.turns) && t.turns[turns].turn <= upto {
		turns++
	}
	summary := e.Summary
	shrinks := e.Shrunk > 0
	if turns == 0 || !shrinks && turns == len(t.turns) || asked && shrinks {
		return errors.New("it is of turns that are not there, or not to be compacted")
	}
	before, prompt := t.bytes, a.prompt()
	switch {
	case shrinks:
		t.shrink(turns)
		r.stage = roomShrunk
	case summary != "":
		t.cut(turns, past{summary: summary, summed: upto}, a.fetches)
		r.stage = roomCut
	default:
		t.cut(turns, t.past.without(t, turns), a.fetches)
		r.stage = roomCut
	}
	if e.Usage != nil {
		a.bill(e.Usage, e.Work)
		a.m.root.met(orElse(e.Model, a.summaryModel().Model))
	}
	r.count++
	r.req, r.failed, r.try = nil, false, 0
	a.lastTokens, a.counted = int(float64(prompt)*(float64(t.bytes)/float64(before))), t.bytes
	a.phase = ready
	return nil
}

// bill adds the usage of an attempt to sum up.
func (a *agent) bill(usage *agentsteps.Usage, worked time.Duration) {
	d := price(a.summaryModel(), usageOf(usage))
	d.WorkMs = count(worked)
	a.use(d)
}

// unsummed takes a failed try to sum up: it is made again later, or the turns are left out.
func (a *agent) unsummed(e *agentsteps.Tried) error {
	r := &a.room
	follows := a.phase == following
	retryAt := e.RetryAt
	until, err := time.Parse(time.RFC3339Nano, retryAt)
	switch {
	case retryAt != "" && err != nil:
		return errors.New("its retryAt is not a time")
	case !follows && e.Try != r.try:
		return errors.New("it is of another try")
	case !follows && retryAt != "" && r.attempts >= a.cfg.Retry.MaxAttempts:
		return errors.New("it was the last try")
	}
	to := -1
	if a.m.form >= formClasses {
		if to, err = a.destination(e); err != nil {
			return err
		}
	}
	a.bill(e.Usage, e.Work)
	if to >= 0 { // the next model sums up, and is asked then
		r.try, r.req = e.Try, nil
		a.failed(e)
		a.moveTo(to)
		if compacts, _ := a.recordedNext(); compacts {
			a.phase = following
		}
		return nil
	}
	switch {
	case follows:
		r.try, r.failed, a.phase = e.Try, retryAt == "", ready
		if compacts, _ := a.recordedNext(); retryAt != "" && compacts {
			a.phase = following // no budget ends a pause
		}
	case retryAt != "":
		r.try++
		r.attempts++
		a.phase = ready
		if a.asksToSumUp(r.req, r.req.MaxTokens) { // the try that failed may have cost something
			a.phase, a.until = pausing, until
		}
	default:
		r.req, r.failed, a.phase = nil, true, ready
	}
	return nil
}

// unsummedBody records a failed try to sum up, with the time of the next one.
func (a *agent) unsummedBody(in ModelFailed, now time.Time) body {
	b := body{"try": float64(in.Try), "code": clean(string(in.Code), 200), "message": clean(in.Message, problem.MaxText), "workMs": millis(in.Worked)}
	if u := bounded(in.Usage); u != (chat.Usage{}) {
		b["usage"] = usageBody(u)
	}
	if a.m.form >= formClasses && a.cfg.Compaction.Model == nil && in.Code != chat.CodeContextExceeded {
		a.after(b, &in, a.room.attempts, false, now)
		return b
	}
	if !in.Final && in.Code != chat.CodeContextExceeded && a.room.attempts < a.cfg.Retry.MaxAttempts {
		b["retryAt"] = instant(now.Add(a.cfg.Retry.pause(a.room.attempts, in.After) + time.Millisecond - 1))
	}
	return b
}
