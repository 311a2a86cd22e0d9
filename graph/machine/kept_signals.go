package machine

import (
	"cmp"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// A signal that comes before a wait that keeps signals (the extension early_signals) is recorded as SignalKept, for the run as a
// whole. The first wait that keeps signals of its name and is reached takes the oldest: it is written like a wait that was
// answered at once.

// Bounds of the signals that a run keeps at a time.
const (
	MaxKeptSignals     = 100
	MaxKeptSignalBytes = 1 << 20
)

// maxPositionSignals is up to how many bytes of kept signals are written into each position.
const maxPositionSignals = 64 << 10

// keptSignal is a signal that no wait has taken. It is stored in positions.
type keptSignal struct {
	Name    string         `json:"name"`
	Payload map[string]any `json:"payload"`
}

func (k *keptSignal) bytes() int { return len(k.Name) + jsonvalue.Size(k.Payload, MaxKeptSignalBytes) }

// KeptSignals counts the signals of a name that a run keeps.
type KeptSignals struct {
	Name  string
	Count int
}

// KeptSignals lists the signals that no wait has taken, by name; empty once the run has ended.
func (m *Machine) KeptSignals() []KeptSignals {
	var list []KeptSignals
	for _, k := range m.kept {
		i, found := slices.BinarySearchFunc(list, k.Name, func(s KeptSignals, name string) int { return cmp.Compare(s.Name, name) })
		if !found {
			list = slices.Insert(list, i, KeptSignals{Name: k.Name})
		}
		list[i].Count++
	}
	return list
}

func (m *Machine) keptBytes() int {
	sum := 0
	for i := range m.kept {
		sum += m.kept[i].bytes()
	}
	return sum
}

// acceptEarly decides whether a signal that no wait awaits can be kept.
func (m *Machine) acceptEarly(s Signal, at problem.Place) error {
	k := keptSignal{s.Name, s.Payload}
	if len(m.kept) >= MaxKeptSignals || m.keptBytes()+k.bytes() > MaxKeptSignalBytes {
		return problem.New(problem.SignalLimitExceeded,
			"the run keeps %d signals that it has not waited for yet; it may keep %d, of %d KiB in all",
			len(m.kept), MaxKeptSignals, MaxKeptSignalBytes>>10).WithReason(problem.NotAwaiting).WithPlace(at).
			WithHint("Nothing was recorded. Send the signal again once the run has taken some; Runner.Status lists what it keeps.")
	}
	return m.acceptable(m.main, object(s.Payload), problem.SignalValidationError, at)
}

// keep records a signal for a wait that comes later.
func (m *Machine) keep(s Signal) {
	m.noteSignalKey(s.IdempotencyKey)
	m.kept = append(slices.Clip(m.kept), keptSignal{s.Name, object(s.Payload)})
	m.event(history.SignalKept, history.Payload{SignalName: s.Name, SignalPayload: object(s.Payload), IdempotencyKey: s.IdempotencyKey})
}

// takeKept returns the oldest kept signal of a name, which is kept no longer.
func (m *Machine) takeKept(name string) (payload map[string]any, ok bool) {
	i := slices.IndexFunc(m.kept, func(k keptSignal) bool { return k.Name == name })
	if i < 0 {
		return nil, false
	}
	payload = m.kept[i].Payload
	m.kept = slices.Delete(slices.Clone(m.kept), i, i+1)
	return payload, true
}

// resolveKept finds the next recorded signal that was kept: the run took it as an input of its own.
func (r *recorded) resolveKept() (resolution, bool) {
	if len(r.kept) == 0 {
		return resolution{}, false
	}
	rec := r.kept[0]
	p := &rec.Payload
	return resolution{seq: rec.Seq, at: rec.CreatedAt, apply: func(m *Machine) {
		r.kept = r.kept[1:]
		m.keep(Signal{Name: p.SignalName, Payload: p.SignalPayload, IdempotencyKey: p.IdempotencyKey})
	}}, true
}
