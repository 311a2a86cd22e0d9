package machine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// drawn is a source of random numbers that come from a text, a byte each; after its end they come from seed.
type drawn struct {
	text []byte
	seed rand.Source
}

// Uint64 implements rand.Source.
func (d *drawn) Uint64() uint64 {
	if len(d.text) == 0 {
		return d.seed.Uint64()
	}
	b := d.text[0]
	d.text = d.text[1:]
	return uint64(b) * 0x0101010101010101 // whichever bits are used
}

// FuzzSchedules is the simulation with workflows and schedules that are chosen by coverage: every byte is a choice, so that a small
// change of the text is a small change of what happens.
func FuzzSchedules(f *testing.F) {
	for seed := range byte(6) {
		f.Add([]byte{}, []byte{}, seed, seed%2 == 0)
		f.Add([]byte{1, seed * 40, 10, 200, 150, seed, 70, 30}, []byte{seed, 250, 30, 90, seed * 20, 128, 60}, seed, seed%2 == 1)
	}
	f.Fuzz(func(t *testing.T, workflow, choices []byte, seed byte, queued bool) {
		if len(workflow) > 200 || len(choices) > 1000 {
			t.Skip("larger workflows add nothing but time")
		}
		w := drawWorkflow(rand.New(&drawn{workflow, rand.NewPCG(uint64(seed), 77)}), rand.New(rand.NewPCG(uint64(seed), 78)))
		w.compensate(rand.New(rand.NewPCG(uint64(seed), 79)))
		n := uint64(seed)
		if queued {
			n += simQueued
		}
		s := newSchedule(t, w, compile(t, w.source()), uint64(seed), n)
		s.rng = rand.New(&drawn{choices, rand.NewPCG(uint64(seed), n)})
		s.run()
	})
}

// FuzzRestore restores damaged positions: one that is refused has a code, and a machine from any other takes every input, or refuses
// it, like one that never was stored.
func FuzzRestore(f *testing.F) {
	entries, err := os.ReadDir("testdata/positions")
	if err != nil {
		f.Fatal(err)
	}
	var progs []*definition.Program
	for i, entry := range entries {
		script, err := os.ReadFile("testdata/" + entry.Name() + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		head, _, _ := strings.Cut(string(script), "\n====\n")
		progs = append(progs, compile(f, stripComments(head)))
		positions, err := os.ReadFile("testdata/positions/" + entry.Name())
		if err != nil {
			f.Fatal(err)
		}
		for position := range bytes.Lines(positions) {
			f.Add(uint8(i), bytes.TrimSuffix(position, []byte("\n")))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) { restoreAnything(t, progs[int(which)%len(progs)], data) })
}

// restoreAnything restores a position of a program, damaged or not, and offers it every input.
func restoreAnything(t *testing.T, prog *definition.Program, data []byte) {
	t.Helper()
	state := object{"log": []any{}}
	restore := func(data []byte) *machine.Machine {
		m, err := machine.Restore(prog, data, maps.Clone(state))
		if _, coded := problem.As(err); err != nil && !coded {
			t.Fatalf("refused without a code: %v", err)
		}
		return m
	}
	m := restore(data)
	if m == nil {
		return
	}
	if stored := m.Position(); stored != nil && restore(stored) == nil {
		t.Fatalf("what was restored is stored as %s, which is refused", stored)
	}
	for _, in := range everyInput(m) {
		if m := restore(data); in == nil || m.Handle(in, epoch.Add(time.Hour)) == nil {
			look(m)
		}
	}
}

// TestDamagedPositions puts other kinds of values in the place of each member of stored positions, and leaves each out; in the short form
// a sample of that. None of them is a panic.
func TestDamagedPositions(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("testdata/positions")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			t.Parallel()
			script, err := os.ReadFile("testdata/" + entry.Name() + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(string(script), "\n====\n")
			prog := compile(t, stripComments(head))
			positions, err := os.ReadFile("testdata/positions/" + entry.Name())
			if err != nil {
				t.Fatal(err)
			}
			damages, every := 0, soak.Size(41, 331, 1)
			for position := range bytes.Lines(positions) {
				var whole object
				if err := json.Unmarshal(position, &whole); err != nil {
					t.Fatal(err)
				}
				damage(whole, func() {
					if damages++; damages%every != 0 {
						return
					}
					data, err := json.Marshal(whole)
					if err != nil {
						t.Fatal(err)
					}
					defer func() {
						if v := recover(); v != nil {
							t.Fatalf("%s: %v\n%s", data, v, debug.Stack())
						}
					}()
					restoreAnything(t, prog, data)
				})
			}
		})
	}
}

// damage changes each value inside v in some ways, one at a time, and calls f after each change.
func damage(v any, f func()) {
	try := func(old any, set func(any)) {
		for _, other := range []any{nil, -1.0, 1.0, 7.0, true, "", "e", "walk", object{}, []any{}} {
			set(other)
			f()
		}
		set(old)
		damage(old, f)
	}
	switch v := v.(type) {
	case object:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			old := v[name]
			delete(v, name)
			f()
			try(old, func(other any) { v[name] = other })
		}
		for _, name := range []string{"same", "phase", "wait", "inner", "changes", "failure", "node"} {
			if _, there := v[name]; !there && v["visit"] != nil {
				for _, other := range []any{true, 3.0, object{}, object{"kind": "child"}, object{"kind": "walk"}, object{"kind": "delegate", "task": object{}}, "e"} {
					v[name] = other
					f()
				}
				delete(v, name)
			}
		}
	case []any:
		for i, old := range v {
			try(old, func(other any) { v[i] = other })
		}
	}
}

// look reads everything that a driver reads.
func look(m *machine.Machine) {
	_, _, _, _, _ = m.Ready(), summary(m), m.Position(), m.Resting(), m.Visits()
	for _, e := range m.InFlight() {
		m.Queue(e.Key())
		m.Restart(e.Key(), epoch)
	}
	for _, timer := range m.Timers() {
		m.TimedWait(timer.Key)
		m.Queue(timer.Key)
	}
}

// everyInput returns inputs of every type, for everything that the machine waits for; nil stands for none.
func everyInput(m *machine.Machine) []machine.Input {
	all := []machine.Input{nil, machine.Cancel{Reason: "enough"}}
	for _, e := range m.InFlight() {
		all = append(all, machine.Continue{Key: e.Key()}, machine.Continue{Key: fmt.Sprintf("walk:%s", e.Key())})
	}
	for _, timer := range m.Timers() {
		all = append(all, machine.TimerFired{Key: timer.Key})
	}
	for _, w := range m.Pending() {
		all = append(all, machine.Outcome{Key: w.Key, OK: true, Output: object{}}, machine.Outcome{Key: w.Key, Error: "no", Repair: object{}},
			machine.Outcome{Host: true, NodeID: w.NodeID, Span: w.Span, OK: true, Output: object{}}, machine.Outcome{Host: true, NodeID: w.NodeID, Span: w.Span, Error: "no"},
			machine.Resume{Key: w.Key, Payload: object{}}, machine.Signal{Name: w.SignalName, Payload: object{}}, machine.Turn{Key: w.Key},
			machine.ChildEnded{Key: w.Key, Status: machine.Completed}, machine.ChildEnded{Key: w.Key, Status: machine.Failed},
			machine.ChildRefused{Key: w.Key, Error: "no"}, machine.TaskUpdate{Key: w.Key, TaskID: "task", Prompt: "?"})
	}
	return slices.Clip(all[:min(len(all), 60)])
}
