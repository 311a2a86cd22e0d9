package admit

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// sent returns what a caller has sent, "" for an input that comes from within.
func sent(in machine.Input) (what string, payload any) {
	switch in := in.(type) {
	case machine.Outcome:
		if in.Host {
			return "result", in.Output
		}
	case machine.Signal:
		return "signal", in.Payload
	case machine.Resume:
		return "answer", in.Payload
	}
	return "", nil
}

// Room refuses what a caller has sent, and the machine has just taken, if the run has no room for it: if recording the call
// would mean the run's end, now or with what follows, or if what follows at once would not fit. Nothing has been committed, so
// the run stays as it was; only the machine is ahead of it. What the machine refuses by itself does not come here: it may be a
// call that is repeated.
func Room(e *history.Execution, m *machine.Machine, limits machine.Limits, in machine.Input, records []history.Record) error {
	what, payload := sent(in)
	if what == "" {
		return nil
	}
	switch {
	case e.Seq >= limits.MaxRecords:
		return full(e, limits, problem.RecordLimitExceeded, what)
	case passesBytes(e, limits.MaxBytes, records, payload):
		return full(e, limits, problem.ByteLimitExceeded, what)
	case m.Status() != machine.Failed:
		return nil
	}
	_, code, _ := m.Failure()
	switch c := problem.Code(code); c {
	case problem.RecordLimitExceeded, problem.ByteLimitExceeded:
		return full(e, limits, c, what)
	}
	return nil
}

const (
	// nearBytes is the room in a run below which its limit is always near, however small the limit is.
	nearBytes = 16 << 20
	// wholeBytes is the size up to which the stores write a record whole, unless they are configured otherwise.
	wholeBytes = 64 << 10
)

// passesBytes reports whether records would take the run past its limit of bytes. They are weighed only where the limit
// is near: those that are written whole as they are; of larger ones, which are written short, what is new is what came
// with the payload, which counts once.
func passesBytes(e *history.Execution, most int64, records []history.Record, payload any) bool {
	left := most - e.Bytes
	if left <= 0 {
		return true
	}
	if left > max(most/100*(100-view.WarnPercent), nearBytes) {
		return false // nothing that a caller sends is as large
	}
	short := false
	var text []byte
	for i := range records {
		r := &records[i]
		if r.Weigh(wholeBytes) >= wholeBytes {
			short = true
			continue
		}
		if text = r.AppendPayload(text[:0], e.ID); len(text) > wholeBytes {
			short = true
			continue
		}
		left -= int64(len(text))
	}
	if short {
		left -= int64(jsonvalue.Weigh(payload, nearBytes))
	}
	return left < 0
}

func full(e *history.Execution, limits machine.Limits, code problem.Code, what string) error {
	limit, used, option := fmt.Sprintf("%d records", limits.MaxRecords), e.Seq, "Options.MaxRecords"
	way := "Cancel the run, or raise the limit (%s), restart this process and send it again."
	if code == problem.ByteLimitExceeded {
		limit, used, option = fmt.Sprintf("%d bytes of history", limits.MaxBytes), e.Bytes, "Options.MaxBytes"
		way = "Send something shorter, such as a reference; or raise the limit (%s), restart this process and send it again; or cancel the run."
	}
	return problem.New(code, "the %s would take the run past its limit of %s, of which it has used %d", what, limit, used).
		WithPlace(problem.Place{ExecutionID: e.ID}).
		WithHint("Nothing was recorded: the run stands and waits as before. "+way, option)
}

// RoomToStart refuses the first records of a run that would take it past its limit of bytes at once: it could not take
// anything afterwards. what names the payload that came with them.
func RoomToStart(e *history.Execution, limits machine.Limits, what string, payload map[string]any, records []history.Record) error {
	if !passesBytes(e, limits.MaxBytes, records, payload) {
		return nil
	}
	return problem.New(problem.ByteLimitExceeded, "the %s would take the run past its limit of %d bytes of history at once", what, limits.MaxBytes).
		WithPlace(problem.Place{ExecutionID: e.ID}).
		WithHint("Nothing was started. Send less, such as a reference to what is large; or raise the limit (Options.MaxBytes), restart this process and start again.")
}
