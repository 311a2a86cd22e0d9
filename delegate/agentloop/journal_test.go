package agentloop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// bench is an agent under test, with the journal that an engine would keep of it.
type bench struct {
	t       testing.TB
	m       *agentloop.Machine
	now     time.Time
	journal []agentloop.Step
	last    agentloop.Batch
	asked   string // the question that is recorded
}

func newBench(t testing.TB, config agentloop.Config, task string) *bench {
	b := &bench{t: t, m: agentloop.New(config, task), now: epoch}
	b.drain()
	return b
}

// drain records what the machine has to record, as an engine does.
func (b *bench) drain() agentloop.Batch {
	b.last = b.m.Ready()
	for _, s := range b.last.Steps {
		b.record(s)
	}
	if q := b.last.Question; q != nil && q.Key != b.asked {
		b.asked = q.Key
		b.record(agentloop.Step{Key: q.Key, Kind: agentloop.StepQuestion, Body: q.Body, At: b.now})
	}
	return b.last
}

// record keeps a step as a store does: as JSON.
func (b *bench) record(s agentloop.Step) {
	s.Body = plain(b.t, s.Body)
	if s.Totals != nil {
		s.Totals = plain(b.t, s.Totals)
	}
	if size := jsonvalue.Size(s.Body, 0); size > 2<<20 {
		b.t.Errorf("step %s %q has %d bytes", s.Kind, s.Key, size)
	}
	for _, name := range []string{"key", "kind", "n", "totals", "schema", "otherwise", "expires"} {
		if _, ok := s.Body[name]; ok {
			b.t.Errorf("step %s %q has the engine's member %s", s.Kind, s.Key, name)
		}
	}
	b.journal = append(b.journal, s)
}

func plain(t testing.TB, v map[string]any) map[string]any {
	t.Helper()
	n, err := jsonvalue.Decode(jsonvalue.Canonical(v))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := n.(map[string]any)
	return m
}

// handle takes an input that must fit.
func (b *bench) handle(in agentloop.Input) agentloop.Batch {
	b.t.Helper()
	if err := b.try(in); err != nil {
		b.t.Fatalf("%T: %v", in, err)
	}
	return b.last
}

func (b *bench) try(in agentloop.Input) error {
	b.now = b.now.Add(time.Millisecond)
	if err := b.m.Handle(in, b.now); err != nil {
		return err
	}
	if a, ok := in.(agentloop.Answered); ok {
		s := agentloop.Step{Key: a.Key, Kind: agentloop.StepAnswer, Body: map[string]any{"payload": a.Payload}, At: b.now}
		if a.Expired {
			s.Body["expired"] = true
		}
		b.record(s)
	}
	b.drain()
	return nil
}

// fetch reads a recorded result as a driver does.
func (b *bench) fetch(e agentloop.FetchResult) agentloop.Input {
	for i := range b.journal {
		if s := &b.journal[i]; s.Key == e.Ref && s.Kind == agentloop.StepResult {
			output, failure := e.View.Of(e.Ref, s.Body)
			return agentloop.ToolReturned{Key: e.Key, Output: output, Failure: failure}
		}
	}
	return agentloop.ToolReturned{Key: e.Key, Failure: agentloop.NoResult(e.Ref)}
}

// describe says all that is open in a machine, requests in full.
func describe(m *agentloop.Machine) string {
	var out bytes.Buffer
	for _, e := range m.Outstanding() {
		text, _ := json.Marshal(e)
		fmt.Fprintf(&out, "%T %s\n", e, text)
	}
	batch := m.Ready()
	if batch.Question != nil {
		text, _ := json.Marshal(batch.Question)
		fmt.Fprintf(&out, "question %s\n", text)
	}
	if batch.Done != nil {
		text, _ := json.Marshal(batch.Done)
		fmt.Fprintf(&out, "done %s\n", text)
	}
	return out.String()
}

// rebuild replays the journal. Pauses that are over here, which is not recorded, are ended there.
func (b *bench) rebuild(begun bool) *agentloop.Machine {
	b.t.Helper()
	m, err := agentloop.Replay(b.journal, begun)
	if err != nil {
		b.t.Fatalf("replay: %v\n%s", err, b.text())
	}
	b.wakeAs(m)
	return m
}

func (b *bench) wakeAs(m *agentloop.Machine) {
	here := map[string]bool{}
	for _, e := range b.m.Outstanding() {
		here[e.ID()] = true
	}
	for _, e := range m.Outstanding() {
		if r, ok := e.(agentloop.Rest); ok && !here[e.ID()] {
			m.Ready()
			if err := m.Handle(agentloop.Woken{Key: r.Key}, r.Until); err != nil {
				b.t.Error(err)
			}
		}
	}
}

// check compares the machine with the one of its journal.
func (b *bench) check() {
	b.t.Helper()
	if len(b.journal) == 0 {
		return
	}
	again := b.rebuild(false)
	if left := again.Ready().Steps; len(left) > 0 {
		b.t.Fatalf("a replay has steps to record: %+v", left)
	}
	if want, got := describe(b.m), describe(again); want != got {
		b.t.Fatalf("after a replay of %d steps\nwant %s\ngot  %s\n%s", len(b.journal), want, got, b.text())
	}
}

var tryOfSummary = regexp.MustCompile(`("Key":"[^"]*k[0-9]+","Agent":"[^"]*","Try":)[0-9]+`)

// checkOtherWording replays the journal as one of a release that told models something else: it is followed, also where conversations were
// made shorter, and the same is asked for.
func (b *bench) checkOtherWording() {
	b.t.Helper()
	if len(b.journal) == 0 || b.journal[0].Kind != agentloop.StepBegun {
		return
	}
	other := slices.Clone(b.journal)
	for i := range other {
		other[i].Body = maps.Clone(other[i].Body)
		if i == 0 {
			other[i].Body["wording"] = 99.0
		}
		if _, ok := other[i].Body["requestHash"]; ok {
			other[i].Body["requestHash"] = "another"
		}
	}
	m, err := agentloop.Replay(other, false)
	if err != nil {
		b.t.Fatalf("with another wording: %v\n%s", err, b.text())
	}
	if last := b.journal[len(b.journal)-1]; last.Kind == agentloop.StepTried && strings.Contains(last.Key, "k") || last.Body["decision"] == "expired" {
		return // the summary is asked for anew, or not any more
	}
	b.wakeAs(m)
	want, got := describe(b.m), describe(m)
	if slices.ContainsFunc(b.journal, func(s agentloop.Step) bool { return s.Body["decision"] == "expired" }) {
		// Whether a summary was asked for when the time ended is not recorded, so its next try may count as the first.
		want, got = tryOfSummary.ReplaceAllString(want, "$1"), tryOfSummary.ReplaceAllString(got, "$1")
	}
	if want != got {
		b.t.Fatalf("with another wording\nwant %s\ngot  %s\n%s", want, got, b.text())
	}
}

// checkPrefix replays the steps before the last batch and some of it: the rest of it follows again.
func (b *bench) checkCuts(batch []agentloop.Step) {
	b.t.Helper()
	end := len(b.journal)
	for end > 0 && b.journal[end-1].Kind == agentloop.StepQuestion {
		end--
	}
	from := end - len(batch)
	for cut := from + 1; cut < end; cut++ {
		m, err := agentloop.Replay(b.journal[:cut], false)
		if err != nil {
			b.t.Fatalf("replay of %d of %d steps: %v", cut, end, err)
		}
		left := m.Ready().Steps
		if len(left) != end-cut {
			b.t.Fatalf("after a cut at %d of %d there are %d steps to record", cut, end, len(left))
		}
		for i := range left {
			if left[i].Key != b.journal[cut+i].Key || !jsonvalue.Equal(left[i].Body, b.journal[cut+i].Body) || !jsonvalue.Equal(left[i].Totals, b.journal[cut+i].Totals) {
				b.t.Fatalf("step %d differs after a cut: %+v", cut+i, left[i])
			}
		}
		b.wakeAs(m)
		if want, got := describe(b.m), describe(m); want != got {
			b.t.Fatalf("after a cut at %d\nwant %s\ngot  %s", cut, want, got)
		}
	}
}

func (b *bench) text() string {
	var out bytes.Buffer
	for _, s := range b.journal {
		text := jsonvalue.Canonical(s.Body)
		if len(text) > 400 {
			text = text[:400]
		}
		fmt.Fprintf(&out, "%s %s %s\n", s.Kind, s.Key, text)
	}
	return out.String()
}
