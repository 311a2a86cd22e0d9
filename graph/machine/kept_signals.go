package machine

import (
	"cmp"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// A signal that arrives before a wait that keeps signals (the extension early_signals) is recorded as SignalKept, for the run as a whole. The
// next wait with keep for its name takes the oldest one, and is recorded like a wait that was answered at once.

// Bounds of the signals that a run keeps at a time.
const (
	MaxKeptSignals     = 100
	MaxKeptSignalBytes = 1 << 20
)

// maxPositionSignals limits the kept signals in a position, in bytes.
const maxPositionSignals = 64 << 10

// keptSignal is a signal that no wait has taken. It is stored in positions.
type keptSignal struct {
	Name    string         `json:"name"`
	Payload map[string]any `json:"payload"`
}

func (k *keptSignal) bytes() int { return len(k.Name) + jsonvalue.Size(k.Payload, MaxKeptSignalBytes) }

// KeptSignals is the number of kept signals of a name.
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

// acceptEarly rejects an early signal that the run cannot keep.
func (m *Machine) acceptEarly(s Signal, at problem.Place) error {
	k := keptSignal{s.Name, s.Payload}
	if len(m.kept) >= MaxKeptSignals || m.keptBytes()+k.bytes() > MaxKeptSignalBytes {
		return problem.New(problem.SignalLimitExceeded,
			"the run has %d early signals; the limit is %d signals and %d KiB",
			len(m.kept), MaxKeptSignals, MaxKeptSignalBytes>>10).WithReason(problem.NotAwaiting).WithPlace(at).
			WithHint("Nothing was recorded. Send the signal again after the run has taken some of them; Runner.Status counts them.")
	}
	return m.acceptable(m.main, object(s.Payload), problem.SignalValidationError, at)
}

// keep records a signal for a later wait.
func (m *Machine) keep(s Signal) {
	m.noteSignalKey(s.IdempotencyKey)
	m.kept = append(slices.Clip(m.kept), keptSignal{s.Name, object(s.Payload)})
	m.event(history.SignalKept, history.Payload{SignalName: s.Name, SignalPayload: object(s.Payload), IdempotencyKey: s.IdempotencyKey})
}

// takeKept removes and returns the oldest kept signal of a name.
func (m *Machine) takeKept(name string) (payload map[string]any, ok bool) {
	i := slices.IndexFunc(m.kept, func(k keptSignal) bool { return k.Name == name })
	if i < 0 {
		return nil, false
	}
	payload = m.kept[i].Payload
	m.kept = slices.Delete(slices.Clone(m.kept), i, i+1)
	return payload, true
}

// resolveKept returns the next recorded SignalKept, which was an input of its own.
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
