package shortform_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/shortform"
)

// memory keeps the rows and blobs of one run.
type memory struct {
	t     *testing.T
	rows  []row
	blobs map[string]string
	texts []string // of the records, written whole
	out   strings.Builder
	// whole is up to which size payloads are written whole; 0 means 1, as short as can be.
	whole int
}

type row struct {
	name    history.Name
	payload []byte
	short   bool
}

func newMemory(t *testing.T) *memory { return &memory{t: t, blobs: map[string]string{}} }

// ShortState implements shortform.Prior.
func (m *memory) ShortState(seq int64) []byte {
	if seq < 1 || seq > int64(len(m.rows)) || !m.rows[seq-1].short || m.rows[seq-1].name != history.StateUpdated {
		return nil
	}
	return m.rows[seq-1].payload
}

// Blob implements shortform.Shelf.
func (m *memory) Blob(hash string) (string, error) { return m.blobs[hash], nil }

// States implements shortform.Shelf.
func (m *memory) States(_ string, first, last int64, each func(seq int64, payload []byte) error) error {
	for seq := first; seq <= last; seq++ {
		if payload := m.ShortState(seq); payload != nil {
			if err := each(seq, payload); err != nil {
				return err
			}
		}
	}
	return nil
}

// add writes a batch, and returns the seq of its last state.
func (m *memory) add(prior history.Prior, records ...history.Record) (state int64) {
	m.t.Helper()
	for i := range records {
		if records[i].Kind == "" {
			records[i].Kind = history.Event
		}
		records[i].Payload.NodeID = "n"
	}
	b := history.Batch{ExecutionID: "run", ExpectedSeq: int64(len(m.rows)), Prior: prior, Records: records}
	e := shortform.Encoder{Batch: &b, WholeBytes: max(m.whole, 1), ValueBytes: 256, Prior: m}
	first := len(m.rows)
	for i := range records {
		m.rows = append(m.rows, row{name: records[i].Name, payload: e.Append(nil, i)})
		m.texts = append(m.texts, string(records[i].AppendPayload(nil, "run")))
		if records[i].Name == history.StateUpdated {
			state = int64(len(m.rows))
		}
	}
	for _, seq := range e.Rows() {
		m.rows[seq-1].short = true
	}
	for i, r := range m.rows[first:] {
		version := history.RecordSchemaVersion
		if r.short {
			version = shortform.Version
		}
		fmt.Fprintln(&m.out, first+i+1, version, string(r.payload))
	}
	for _, blob := range e.Blobs() {
		m.blobs[blob.Hash] = blob.Content
	}
	return state
}

// check reads the records back, in order and each by itself.
func (m *memory) check() {
	m.t.Helper()
	inOrder := shortform.NewDecoder("run", m, false)
	for i, r := range m.rows {
		for _, d := range []*shortform.Decoder{inOrder, shortform.NewDecoder("run", m, false)} {
			if !r.short && shortform.HasShortOwn(r.name, r.payload) {
				p, err := d.Own(r.name, r.payload)
				record := history.Record{Name: r.name, Payload: p}
				if got := string(record.AppendPayload(nil, "run")); err != nil || got != m.texts[i] {
					m.t.Fatalf("record %d, of which the request is short, came back as %v\n%.200s\nwant\n%.200s", i+1, err, got, m.texts[i])
				}
				continue
			}
			if !r.short {
				if string(r.payload) != m.texts[i] {
					m.t.Fatalf("record %d is\n%.200s\nwant\n%.200s", i+1, r.payload, m.texts[i])
				}
				continue
			}
			p, err := d.Payload(r.name, int64(i+1), r.payload)
			if err != nil {
				m.t.Fatalf("record %d: %v", i+1, err)
			}
			record := history.Record{Name: r.name, Payload: p}
			if got := string(record.AppendPayload(nil, "run")); got != m.texts[i] {
				m.t.Fatalf("record %d came back as\n%.200s\nwant\n%.200s", i+1, got, m.texts[i])
			}
		}
	}
}

// TestRowsAreAsRecorded compares the text of short payloads and of their blobs, byte for byte, with that of a release, which is
// never made again: engines of every version read each other's rows. Blobs are compared through their hashes.
func TestRowsAreAsRecorded(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	text := func(seed string, n int) string { return strings.Repeat(seed+` "é\n" `, n) }
	state := map[string]any{"text": text("a", 60), "log": []any{}, "$odd": map[string]any{"$blob": text("x", 40)}, "n": 0.0, "empty": map[string]any{}}
	seq := m.add(history.Prior{},
		history.Record{Name: history.ExecutionStarted, Payload: history.Payload{WorkflowName: "w", Mode: "in_process", Input: state}},
		history.Record{Name: history.StateUpdated, Payload: history.Payload{State: state}})
	prior := history.Prior{Seq: seq, State: state}
	for step := range 14 {
		next := maps.Clone(state)
		entry := map[string]any{"step": float64(step), "text": text(fmt.Sprint(step), 5+10*(step%4)), "parts": []any{"short", text("p", 30), nil, true}}
		next["log"] = append(slices.Clone(state["log"].([]any)), entry)
		given := map[string]any{"log": next["log"], "entry": entry}
		switch step % 7 {
		case 2:
			next["n"] = float64(step)
		case 3:
			next["text"] = text("b", 50+step)
			given["text"] = next["text"]
		case 4:
			delete(next, "$odd")
		case 5:
			next["$odd"] = map[string]any{"$$": []any{text("$", 40)}}
			given = map[string]any{"whole": next}
		case 6: // a batch without a prior state
			prior = history.Prior{}
		}
		seq := m.add(prior,
			history.Record{Name: history.ActivityCompleted, Payload: history.Payload{Result: history.Some(given), Usage: map[string]any{"note": text("u", 40)}}},
			history.Record{Kind: history.Command, Name: history.CompleteNode, Payload: history.Payload{Output: given}},
			history.Record{Name: history.StateUpdated, Payload: history.Payload{State: next}},
			history.Record{Name: history.CheckpointWritten, Payload: history.Payload{StateRef: next}},
			history.Record{Kind: history.Command, Name: history.ScheduleNode},
			history.Record{Name: history.ActivityRequested, Payload: history.Payload{NodeType: "agent_delegate", AgentID: "a", Protocol: "a2a",
				Correlation: "c", Mode: "host_mediated", DelegateInput: []map[string]any{next, {"log": next["log"], "n": 1.0}}[step%2]}})
		state, prior = next, history.Prior{Seq: seq, State: next}
	}
	m.add(prior, history.Record{Name: history.SignalReceived, Payload: history.Payload{SignalName: "s", SignalPayload: state}},
		history.Record{Name: history.StateUpdated, Payload: history.Payload{State: map[string]any{"n": 1.0}}},
		history.Record{Name: history.ExecutionCompleted, Payload: history.Payload{Result: history.Some(text("end", 60))}})
	m.check()
	recorded, err := os.ReadFile(filepath.Join("testdata", "rows.txt"))
	if err != nil {
		t.Fatal(err)
	}
	got, want := strings.SplitAfter(m.out.String(), "\n"), strings.SplitAfter(string(recorded), "\n")
	if len(got) != len(want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("row %d is\n%swant\n%s", i+1, got[i], want[i])
		}
	}
}

// TestRequestsAreShortInWholeRows: a row with a large request counts as whole, and its request is read back.
func TestRequestsAreShortInWholeRows(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.whole = 1 << 10
	long := strings.Repeat("long ", 400)
	for _, request := range []map[string]any{
		{"model": "m"}, {"messages": []any{map[string]any{"content": long}}}, {"arguments": map[string]any{"$blob": "no reference", "$filter": long}}, {},
	} {
		m.add(history.Prior{}, history.Record{Name: history.ActivityRequested, Payload: history.Payload{Request: request, DelegateInput: map[string]any{"$blob": "x"}}})
		m.add(history.Prior{}, history.Record{Name: history.InterruptRaised, Payload: history.Payload{Prompt: "?", AgentStep: request}})
	}
	for i, r := range m.rows {
		if r.short || len(r.payload) > 300 {
			t.Errorf("row %d (short: %t) is %s", i+1, r.short, r.payload)
		}
	}
	m.check()
	m.blobs = nil
	p, err := shortform.NewDecoder("run", m, true).Own(history.ActivityRequested, m.rows[2].payload)
	if err != nil || p.Request != nil {
		t.Errorf("an outline reads the request: %v, %v", p.Request, err)
	}
	if _, err := shortform.NewDecoder("run", m, false).Own(history.ActivityRequested, m.rows[2].payload); err == nil {
		t.Error("a request without its blob is read")
	}
}

// TestReusedMemoryIsAnotherValue: a large list or object that is met twice is recognised by its pointer. What a delta says is
// garbage once it is written, and the next one in the same batch may be allocated where it was.
func TestReusedMemoryIsAnotherValue(t *testing.T) {
	t.Parallel()
	stop, stopped := make(chan struct{}), make(chan struct{})
	defer func() { close(stop); <-stopped }()
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Microsecond):
				runtime.GC()
			}
		}
	}()
	list := make([]any, 20)
	for i := range list {
		list[i] = strings.Repeat(fmt.Sprintf("%03d ", i), 20)
	}
	records := []history.Record{{Name: history.StateUpdated, Payload: history.Payload{State: map[string]any{"list": list}}}}
	for n := range 2000 {
		changed := slices.Clone(list)
		for i := range 5 {
			changed[i] = strings.Repeat(fmt.Sprintf("%d.%d", n, i), 12)
		}
		records = append(records, history.Record{Name: history.ActivityCompleted, Payload: history.Payload{Result: history.Some(map[string]any{"list": changed})}})
	}
	m := newMemory(t)
	m.add(history.Prior{}, records...)
	m.check()
}

// TestUnreadablePayloads: what a short payload refers to may be gone or changed, and any text may stand in its place.
func TestUnreadablePayloads(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 100)
	m := newMemory(t)
	one, two := map[string]any{"text": long, "log": []any{long}}, map[string]any{"text": long, "log": []any{long, "more"}}
	seq := m.add(history.Prior{}, history.Record{Name: history.StateUpdated, Payload: history.Payload{State: one}})
	m.add(history.Prior{Seq: seq, State: one}, history.Record{Name: history.StateUpdated, Payload: history.Payload{State: two}},
		history.Record{Name: history.CheckpointWritten, Payload: history.Payload{StateRef: two}},
		history.Record{Name: history.ActivityCompleted, Payload: history.Payload{Result: history.Some(map[string]any{"log": []any{long, "more", "again"}})}})
	for name, text := range map[string]string{
		"no JSON":            `{`,
		"no object":          `[]`,
		"no state":           `{"state":{}}`,
		"two forms":          `{"state":{"$snapshot":{},"$delta":{}}}`,
		"based on itself":    `{"state":{"$delta":{"base":9,"whole":9}}}`,
		"based on nothing":   `{"state":{"$delta":{"base":0,"whole":0}}}`,
		"no such base":       `{"state":{"$delta":{"base":8,"whole":8,"changes":{}}}}`,
		"snapshot of a list": `{"state":{"$snapshot":{"size":1,"state":[]}}}`,
		"unknown mark":       `{"result":{"$other":1}}`,
		"no such blob":       `{"result":{"$blob":"00"}}`,
		"no such state":      `{"result":{"$state":8}}`,
		"state 0":            `{"result":{"$state":0}}`,
		"part of a number":   `{"result":{"$part":7}}`,
		"part of itself":     `{"result":{"$part":{"state":9,"hash":"","names":[],"changes":{}}}}`,
	} {
		record := history.StateUpdated
		if strings.Contains(text, "result") {
			record = history.ActivityCompleted
		}
		if _, err := shortform.NewDecoder("run", m, false).Payload(record, 9, []byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	clear(m.blobs)
	for i, r := range m.rows {
		if _, err := shortform.NewDecoder("run", m, false).Payload(r.name, int64(i+1), r.payload); err == nil {
			t.Errorf("record %d is read without blobs", i+1)
		}
	}
}
