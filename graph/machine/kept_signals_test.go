package machine_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

const earlySignals = `
document: {schema: "urn:t", name: early, version: "1"}
x-workflows-engine: {uses: [early_signals, loop]}
state_schema: {type: object}
nodes:
  - {id: s, type: start}
  - {id: work, type: step, config: {handler: h}}
  - {id: all, type: switch, loop: {while: .n < 200, body: take, max: 200, counter: n}, config: {default: e}}
  - {id: take, type: wait, config: {kind: signal, signal: go}, keep: true}
  - {id: e, type: end}
edges:
  - {source: __start__, target: s}
  - {source: s, target: work}
  - {source: work, target: all}
  - {source: take, target: all}
`

// TestKeptSignalsAreBounded keeps as many signals as a run may, by number and by size, and takes them all.
func TestKeptSignalsAreBounded(t *testing.T) {
	t.Parallel()
	prog := compile(t, earlySignals)
	for _, tt := range []struct{ bytes, want int }{{10, machine.MaxKeptSignals}, {300 << 10, 3}, {2 << 20, 0}} {
		m := machine.Start(prog, machine.Config{ExecutionID: "x"}, nil, epoch)
		signal := machine.Signal{Name: "go", Payload: object{"text": strings.Repeat("x", tt.bytes)}}
		kept := 0
		var err error
		for err == nil {
			if err = m.Handle(signal, epoch); err == nil {
				kept++
			}
		}
		if kept != tt.want || !errors.Is(err, problem.SignalLimitExceeded) {
			t.Errorf("%d bytes: kept %d, want %d; then %v", tt.bytes, kept, tt.want, err)
		}
		if m.Ready(); (m.Position() == nil) != (tt.bytes*kept > 64<<10) {
			t.Errorf("%d bytes: %d in the position", tt.bytes, len(m.Position()))
		}
		if err := m.Handle(machine.Outcome{Key: "work#1.1", OK: true, Output: object{}}, epoch); err != nil {
			t.Fatal(err)
		}
		if n := m.State()["n"]; n != float64(kept+1) || len(m.KeptSignals()) > 0 || m.Status() != machine.AwaitingSignal {
			t.Errorf("%d bytes: %v rounds, %v are kept, %s", tt.bytes, n, m.KeptSignals(), m.Status())
		}
	}
}

// TestKeptSignalsHaveKeys refuses a key that came with a kept signal, before and after it was taken, in a rebuilt run too.
func TestKeptSignalsHaveKeys(t *testing.T) {
	t.Parallel()
	prog := compile(t, earlySignals)
	m := machine.Start(prog, machine.Config{ExecutionID: "x"}, nil, epoch)
	rows := m.Ready().Records
	give := func(in machine.Input) error {
		t.Helper()
		err := m.Handle(in, epoch)
		rows = append(rows, m.Ready().Records...)
		return err
	}
	again := func() {
		t.Helper()
		if err := give(machine.Signal{Name: "go", IdempotencyKey: "k"}); !errors.Is(err, problem.SignalNotAwaiting) {
			t.Errorf("the same key again: %v", err)
		}
	}
	if err := give(machine.Signal{Name: "go", IdempotencyKey: "k"}); err != nil {
		t.Fatal(err)
	}
	again()
	var err error
	if m, err = machine.Replay(prog, m.Config(), roundTrip(t, rows), nil, epoch); err != nil {
		t.Fatal(err)
	}
	again()
	if kept := m.KeptSignals(); len(kept) != 1 || kept[0] != (machine.KeptSignals{Name: "go", Count: 1}) {
		t.Errorf("kept: %v", kept)
	}
	if err := give(machine.Outcome{Key: "work#1.1", OK: true, Output: object{}}); err != nil {
		t.Fatal(err)
	}
	again()
	if len(m.KeptSignals()) > 0 {
		t.Errorf("kept: %v", m.KeptSignals())
	}
}

// TestRoundsOfAPosition refuses rounds that no loop can have.
func TestRoundsOfAPosition(t *testing.T) {
	t.Parallel()
	prog := compile(t, earlySignals)
	m := machine.Start(prog, machine.Config{ExecutionID: "x"}, nil, epoch)
	if err := m.Handle(machine.Outcome{Key: "work#1.1", OK: true, Output: object{}}, epoch); err != nil {
		t.Fatal(err)
	}
	m.Ready()
	data, state := m.Position(), m.State()
	for rounds, good := range map[string]bool{
		`{"all":1}`: true, `{"all":200}`: true, `{"all":0}`: false, `{"all":201}`: false, `{"take":1}`: false, `{"no":1}`: false,
	} {
		_, err := machine.Restore(prog, bytes.Replace(data, []byte(`{"all":1}`), []byte(rounds), 1), state)
		if (err == nil) != good || err != nil && !errors.Is(err, problem.HistoryCorrupt) {
			t.Errorf("%s: %v", rounds, err)
		}
	}
	if !bytes.Contains(data, []byte(`"rounds":{"all":1}`)) {
		t.Errorf("no rounds in %s", data)
	}
}
