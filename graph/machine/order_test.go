package machine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// generator draws small definitions of nested parallel blocks, loops and every kind of wait.
type generator struct {
	rng   *rand.Rand
	nodes []string
	edges []string
	next  int
	joins []string
	// inside says that nodes are made in a branch; branched are those nodes.
	inside   int
	branched map[string]bool
}

func (g *generator) id(prefix string) string {
	g.next++
	if id := fmt.Sprintf("%s%d", prefix, g.next); g.inside > 0 {
		if g.branched == nil {
			g.branched = map[string]bool{}
		}
		g.branched[id] = true
	}
	return fmt.Sprintf("%s%d", prefix, g.next)
}

func (g *generator) node(format string, args ...any) {
	g.nodes = append(g.nodes, fmt.Sprintf(format, args...))
}

func (g *generator) edge(a, b string) {
	g.edges = append(g.edges, fmt.Sprintf(`{"source":%q,"target":%q}`, a, b))
}

// chain makes a few nodes in a row that lead to target, and returns the first.
func (g *generator) chain(target string, depth int) string {
	for range g.rng.IntN(3) + 1 {
		target = g.one(target, depth)
	}
	return target
}

// one makes a node before target.
func (g *generator) one(target string, depth int) string {
	kind := g.rng.IntN(10)
	if depth == 0 && kind == 8 {
		kind = 0
	}
	timeout := ""
	if g.rng.IntN(2) == 0 {
		timeout = `,"timeout":"1h"` // never passes by itself
	}
	id := g.id("n")
	switch kind {
	case 0, 1, 2:
		g.node(`{"id":%q,"type":"tool_call","config":{"server":"s","tool":"t"},"retry":{"max_attempts":%d,"initial_interval":%q}}`,
			id, g.rng.IntN(3)+1, []string{"", "50ms"}[g.rng.IntN(2)])
	case 3:
		g.node(`{"id":%q,"type":"set_state","config":{"assignments":{"log":{"literal":%q},"m":{"jq":"{%s:1}"}}}}`, id, id, id)
	case 4:
		g.node(`{"id":%q,"type":"wait","config":{"kind":"duration","duration_ms":%d}}`, id, g.rng.IntN(3)*100)
	case 5:
		g.node(`{"id":%q,"type":"wait","config":{"kind":"signal","signal":%q}}`, id, id)
	case 6:
		g.node(`{"id":%q,"type":"agent_delegate","config":{"agent_id":"a","protocol":"sdk","input_mapping":{"log":"${ .log }"}}}`, id)
	case 7:
		g.node(`{"id":%q,"type":"subworkflow","config":{"workflow_ref":"urn:c","input_mapping":{}}}`, id)
	case 8:
		join := g.joins[g.rng.IntN(len(g.joins))]
		n := g.rng.IntN(3) + 1
		var branches []string
		g.inside++
		for i := range n {
			branches = append(branches, fmt.Sprintf(`{"name":"b%d","entry":%q}`, i, g.chain(target, depth-1)))
		}
		g.inside--
		extra := ""
		if join == "n_of_m" {
			extra = fmt.Sprintf(`,"n":%d`, g.rng.IntN(n)+1)
		}
		g.node(`{"id":%q,"type":"parallel","config":{"join":%q%s%s,"branches":[%s]}}`, id, join, extra, timeout, strings.Join(branches, ","))
	case 9:
		g.node(`{"id":%q,"type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object"}%s}}`, id, timeout)
	}
	g.edge(id, target)
	return id
}

func (g *generator) definition() string {
	g.node(`{"id":"s","type":"start"}`)
	g.node(`{"id":"e","type":"end"}`)
	first := g.chain(g.one("e", 2), 2)
	g.edge("__start__", "s")
	g.edge("s", first)
	maxItems := 1000
	if g.rng.IntN(3) == 0 {
		maxItems = g.rng.IntN(6) + 1 // what branches add may be too much, alone or together
	}
	return fmt.Sprintf(`{"document":{"schema":"urn:t","name":"g","version":"1"},
		"state_schema":{"type":"object","properties":{"log":{"type":"array","maxItems":%d,"reducer":"append"},"m":{"type":"object","reducer":"merge"}}},
		"nodes":[%s],"edges":[%s]}`, maxItems, strings.Join(g.nodes, ","), strings.Join(g.edges, ","))
}

// world decides every outcome by node and attempt alone, so that it does not depend on the timing.
type world struct {
	failing map[string]int
	// expiring lets deadlines pass at random.
	expiring bool
}

func (w world) answer(wait machine.Wait) machine.Input {
	switch wait.Kind {
	case machine.WaitActivity, machine.WaitDelegate:
		o := machine.Outcome{Key: wait.Key}
		if wait.Host {
			o = machine.Outcome{Host: true, NodeID: wait.NodeID, Span: wait.Span, CorrelationID: wait.CorrelationID}
		}
		if wait.Attempt <= w.failing[wait.NodeID] {
			o.Error = fmt.Sprintf("%s attempt %d", wait.NodeID, wait.Attempt)
			return o
		}
		o.OK = true
		o.Output = map[string]any{"log": wait.NodeID, "m": map[string]any{wait.NodeID: true}}
		return o
	case machine.WaitInterrupt:
		return machine.Resume{Key: wait.Key, Payload: map[string]any{"answered": wait.NodeID}}
	case machine.WaitSignal:
		return machine.Signal{Name: wait.SignalName, Payload: map[string]any{"log": wait.NodeID}}
	case machine.WaitChild:
		return machine.ChildEnded{Key: wait.Key, Status: machine.Completed, FinalState: map[string]any{"log": wait.NodeID}}
	case machine.WaitTimer:
		return machine.TimerFired{Key: "timer:" + wait.Key}
	case machine.WaitBackoff:
		return machine.TimerFired{Key: "backoff:" + wait.Key}
	default:
		return nil
	}
}

// run drives a machine to its end, answers waits in random order, and rebuilds the machine at random moments.
func (w world) run(t *testing.T, prog *definition.Program, cfg machine.Config, rng *rand.Rand) (script []string, m *machine.Machine) {
	t.Helper()
	cfg.ExecutionID = "x"
	now := epoch
	m = machine.Start(prog, cfg, map[string]any{"log": []any{}}, now)
	var rows []history.Record
	var stored []storedPosition
	for range 10_000 {
		batch := m.Ready()
		for _, r := range batch.Records {
			rows = append(rows, r)
			if r.Kind == history.Command || r.Name == history.StateUpdated {
				script = append(script, describe(r))
			}
		}
		if m.Status().Terminal() {
			return script, m
		}
		stored = append(stored, storedPosition{len(rows), m.Position()})
		if rng.IntN(4) == 0 {
			m = w.rebuild(t, prog, m, rows, stored, now, rng)
		}
		if timers := deadlines(m); w.expiring && len(timers) > 0 && rng.IntN(6) == 0 {
			timer := timers[rng.IntN(len(timers))]
			if timer.Due.After(now) {
				now = timer.Due
			}
			if err := handle(t, m, machine.TimerFired{Key: timer.Key}, now); err != nil {
				t.Fatalf("%s: %v", timer.Key, err)
			}
			continue
		}
		waits := m.Pending()
		wait := waits[rng.IntN(len(waits))]
		if wait.Due.After(now) {
			now = wait.Due
		}
		now = now.Add(time.Duration(rng.IntN(10)) * time.Millisecond)
		if wait.Kind == machine.WaitInterrupt && !wait.Deadline.IsZero() && !now.Before(wait.Deadline) {
			if err := handle(t, m, w.answer(wait), now); !errors.Is(err, problem.InvalidResumePayload) {
				t.Fatalf("%s: answered too late: %v", wait.Key, err)
			}
			if err := handle(t, m, machine.TimerFired{Key: "deadline:" + wait.Key}, now); err != nil {
				t.Fatalf("%s: %v", wait.Key, err)
			}
			continue
		}
		err := handle(t, m, w.answer(wait), now)
		if signal, ok := w.answer(wait).(machine.Signal); ok && errors.Is(err, problem.SignalValidationError) {
			signal.Payload = nil // what the branch has is full: that depends on the branch alone
			err = handle(t, m, signal, now)
			if errors.Is(err, problem.SignalValidationError) && len(waits) > 1 {
				continue // a block within the branch has made too much of it, which ends the run at the branch's turn
			}
		}
		if err != nil {
			t.Fatalf("%s %s: %v", wait.Kind, wait.Key, err)
		}
	}
	t.Fatal("the run did not end")
	return nil, nil
}

// deadlines are the open timers of interrupts and parallel blocks.
func deadlines(m *machine.Machine) []machine.Timer {
	return slices.DeleteFunc(m.Timers(), func(t machine.Timer) bool { return !strings.HasPrefix(t.Key, "deadline:") })
}

// storedPosition is a position as of a number of rows.
type storedPosition struct {
	rows int
	data []byte
}

// rebuild returns a new machine from the whole history, or from an earlier position and the rows since.
func (w world) rebuild(t *testing.T, prog *definition.Program, m *machine.Machine, rows []history.Record, stored []storedPosition, now time.Time, rng *rand.Rand) *machine.Machine {
	t.Helper()
	want := summary(m)
	var rebuilt *machine.Machine
	var err error
	if rng.IntN(2) == 0 {
		rebuilt, err = machine.Replay(prog, machine.Config{ExecutionID: "x"}, roundTrip(t, rows), nil, now)
	} else {
		from := stored[max(0, len(stored)-1-rng.IntN(8))]
		var state map[string]any
		if seq := machine.PositionStateSeq(from.data); seq > 0 {
			state = roundTrip(t, rows[seq-1:seq])[0].Payload.State
		}
		if rebuilt, err = machine.Restore(prog, from.data, state); err == nil {
			err = rebuilt.Catchup(roundTrip(t, rows[from.rows:]), now)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if b := rebuilt.Ready(); len(b.Records)+len(b.Effects) > 0 {
		t.Fatalf("a rebuilt machine adds %d records, %d effects: %s", len(b.Records), len(b.Effects), describe(b.Records[0]))
	}
	if got := summary(rebuilt); got != want {
		t.Fatalf("rebuilt machine differs:\nwant %s\ngot  %s", want, got)
	}
	return rebuilt
}

// TestScriptIsIndependentOfTiming checks the strongest property of the walker: with join "all", commands and states depend
// neither on the order of the outcomes nor on how often the run is rebuilt, as long as no branch fails. Whether the run fails does not
// either; the first failure as recorded decides, and how far the other branches have come by then is a matter of time.
func TestScriptIsIndependentOfTiming(t *testing.T) {
	t.Parallel()
	var alike, tried atomic.Int64
	t.Cleanup(func() {
		if alike.Load()*5 < tried.Load()*3 && tried.Load() > 1 {
			t.Errorf("only %d of %d workflows were compared in all orders", alike.Load(), tried.Load())
		}
	})
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			g := &generator{rng: rng, joins: []string{"all"}}
			src := g.definition()
			prog := compile(t, src)
			w := world{failing: map[string]int{}}
			for _, n := range prog.Nodes {
				if n.Type == definition.ToolCall && rng.IntN(4) == 0 {
					w.failing[n.ID] = rng.IntN(4)
				}
			}
			tried.Add(1)
			var first []string
			var mode string
			var ended machine.Status
			for i := range uint64(6) {
				cfg := machine.Config{}
				if i%2 == 1 && strings.Contains(src, `"maxItems":1000,`) { // a host is told, and corrects; an executor fails
					cfg.Mode = machine.HostMediated
				}
				script, m := w.run(t, prog, cfg, rand.New(rand.NewPCG(seed, 100+i)))
				if _, _, node := m.Failure(); m.Status() != ended && ended != "" {
					t.Fatalf("ended %s, and %s in another order\n%s", m.Status(), ended, src)
				} else if ended = m.Status(); ended == machine.Failed && g.branched[node] {
					continue
				}
				alike.Add(int64(1 - min(len(first), 1)))
				got := strings.Join(script, "\n") + "\n" + text(m.State())
				// A host's failed delegate has another reason; the rest is the same in both modes.
				if first == nil {
					first, mode = []string{got}, string(cfg.Mode)
				} else if got != first[0] {
					t.Fatalf("another script (%s, %s)\n%s\n%s", mode, cfg.Mode, firstDifference(first[0], got), src)
				}
			}
		})
	}
}

// TestAnyJoinsEnd drives the other join policies, and lets deadlines pass: in any order the run ends, and a rebuilt machine
// never differs.
func TestAnyJoinsEnd(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 2))
			g := &generator{rng: rng, joins: []string{"all", "any", "n_of_m"}}
			prog := compile(t, g.definition())
			w := world{failing: map[string]int{}, expiring: rng.IntN(2) == 0}
			for _, n := range prog.Nodes {
				if n.Type == definition.ToolCall && rng.IntN(3) == 0 {
					w.failing[n.ID] = rng.IntN(4)
				}
			}
			cfg := machine.Config{Branches: []machine.BranchOrder{machine.Concurrent, machine.Sequential}[rng.IntN(2)]}
			w.run(t, prog, cfg, rng)
		})
	}
}
