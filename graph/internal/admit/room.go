package admit

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// sent names the payload of a caller's input, "" for an internal input.
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

// Room rejects a caller's input that the machine has just taken if the run has no room for it: if recording the call would end the run,
// now or later, or if the immediate consequences would not fit. Nothing is committed, so the run is unchanged; only the machine is ahead
// of it. Inputs that the machine rejects do not get here: they may be repeated calls.
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
	// nearBytes is the room in a run below which its limit counts as near, however small the limit is.
	nearBytes = 16 << 20
	// wholeBytes is the largest record, in bytes, that stores write whole by default.
	wholeBytes = 64 << 10
)

// passesBytes reports whether records would take the run past its limit of bytes. It weighs them only near the limit. Small records are
// written whole. Larger ones are written short, so they add only the payload, once.
func passesBytes(e *history.Execution, most int64, records []history.Record, payload any) bool {
	left := most - e.Bytes
	if left <= 0 {
		return true
	}
	if left > max(most/100*(100-view.WarnPercent), nearBytes) {
		return false // no caller's payload is as large
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
	return problem.New(code, "the %s would exceed the run's limit of %s; %d are used", what, limit, used).
		WithPlace(problem.Place{ExecutionID: e.ID}).
		WithHint("Nothing was recorded: the run is still waiting. "+way, option)
}

// RoomToStart rejects the first records of a run that would take it past its limit of bytes at once: it could not take any input
// afterwards. label names their payload.
func RoomToStart(e *history.Execution, limits machine.Limits, label string, payload map[string]any, records []history.Record) error {
	if !passesBytes(e, limits.MaxBytes, records, payload) {
		return nil
	}
	return problem.New(problem.ByteLimitExceeded, "the %s would take the run past its limit of %d bytes of history at once", label, limits.MaxBytes).
		WithPlace(problem.Place{ExecutionID: e.ID}).
		WithHint("Nothing was started. Send less, such as a reference to large content; or raise the limit (Options.MaxBytes), restart this process and start again.")
}
