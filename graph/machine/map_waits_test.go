package machine_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// A node with a map has no attempt of its own: readers of the history must not take it for one that waits for its turn.
func TestQueuedMapHasNoTurn(t *testing.T) {
	t.Parallel()
	prog := compile(t, `{"document":{"schema":"urn:test","name":"map","version":"1"},"x-workflows-engine":{"uses":["map"]},
		"state_schema":{"type":"object"},
		"nodes":[{"id":"s","type":"start"},{"id":"each","type":"step","config":{"handler":"h"},"map":{"items":"[]"}},
		{"id":"wait","type":"wait","config":{"kind":"signal","signal":"go"}},{"id":"e","type":"end"}],
		"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"each"},{"source":"each","target":"wait"},{"source":"wait","target":"e"}]}`)
	cfg := machine.Config{ExecutionID: "x"}
	cfg.Limits.Queued = func(*definition.Node) bool { return true }
	m := machine.Start(prog, cfg, nil, epoch)
	projected, waiting := history.Project("x", m.Ready().Records).Waits, m.Pending()
	if len(projected) != len(waiting) {
		t.Errorf("the history shows %d waits, the run has %d", len(projected), len(waiting))
	}
}

// The command of an interrupt may be held back, because a branch before it has not ended. Readers of the history find it open all
// the same.
func TestHeldBackInterruptIsOpen(t *testing.T) {
	t.Parallel()
	prog := compile(t, `{"document":{"schema":"urn:test","name":"ask","version":"1"},"x-workflows-engine":{"uses":["interrupt_in_branch"]},
		"state_schema":{"type":"object"},
		"nodes":[{"id":"s","type":"start"},{"id":"p","type":"parallel","config":{"join":"all","branches":[{"name":"x","entry":"work"},{"name":"y","entry":"ask"}]}},
		{"id":"work","type":"step","config":{"handler":"h"}},{"id":"ask","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object"}}},{"id":"e","type":"end"}],
		"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"p"},{"source":"p","target":"e"},{"source":"work","target":"e"},{"source":"ask","target":"e"}]}`)
	m := machine.Start(prog, machine.Config{ExecutionID: "x"}, nil, epoch)
	waits := history.Project("x", m.Ready().Records).Waits
	if len(waits) != 2 || waits[1].Kind != history.WaitInterrupt {
		t.Errorf("the history shows the waits %+v, the run has %+v", waits, m.Pending())
	}
}

// A key that is not awaited may be that of an item that has ended: the refusal must not offer another item's key for its outcome.
func TestRefusedItemOffersNoOtherItem(t *testing.T) {
	t.Parallel()
	prog := compile(t, `{"document":{"schema":"urn:test","name":"map","version":"1"},"x-workflows-engine":{"uses":["map"]},
		"state_schema":{"type":"object"},
		"nodes":[{"id":"s","type":"start"},{"id":"each","type":"step","config":{"handler":"h"},"map":{"items":"[1,2]"}},{"id":"e","type":"end"}],
		"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"each"},{"source":"each","target":"e"}]}`)
	m := machine.Start(prog, machine.Config{ExecutionID: "x", Mode: machine.HostMediated}, nil, epoch)
	err := m.Check(machine.Outcome{Host: true, OK: true, NodeID: "each", IdempotencyKey: "x:each#9.1"}, epoch)
	if e, ok := problem.As(err); !ok || strings.Contains(e.Hint, "each#") {
		t.Errorf("refused by %v with the hint %q", err, e.Hint)
	}
}
