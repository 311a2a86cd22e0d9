package historysql_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// smallest makes a store write short what can be.
var smallest = historysql.Options{Synchronous: historysql.Normal, WholeBytes: 1, ValueBytes: 256}

// TestStoreThatWritesShort runs the kit with every payload written short that holds a value. Runs with a label are found in the order of time.
func TestStoreThatWritesShort(t *testing.T) {
	t.Parallel()
	historytest.Run(t, func(t testing.TB, now func() time.Time) history.Store {
		o := smallest
		o.Now = now
		s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), o)
		s.SetMaxLabelled(0)
		return s
	})
}

// TestStatesSurviveRestarts writes random states, with a new process and other sizes between, and reads them back.
func TestStatesSurviveRestarts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "runs.db")
			w := historytest.NewWalk(t, "walk", 100+seed)
			for round := range 8 {
				o := smallest
				o.WholeBytes = []int{1, 2000, 20_000, 0}[(round+int(seed))%4]
				s, err := historysql.Open(t.Context(), path, o)
				if err != nil {
					t.Fatal(err)
				}
				if round > 0 {
					w.Check(s)
					w.Restart(s)
				}
				for range 5 {
					w.Append(s)
				}
				w.Check(s)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// states appends one StateUpdated per step and returns how much larger than an empty file the closed file is.
func states(t testing.TB, first map[string]any, steps int, next func(step int, state map[string]any) map[string]any) int64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.db")
	s, err := historysql.Open(t.Context(), path, historysql.Options{Synchronous: historysql.Normal})
	if err != nil {
		t.Fatal(err)
	}
	x := historytest.NewTrace(t, "0f8fad5b-d9cb-469f-a165-70867728950e")
	state, prior := first, history.Prior{}
	for step := range steps {
		if step > 0 {
			state = next(step, state)
		}
		b := history.Batch{ExecutionID: x.Execution.ID, ExpectedSeq: x.Execution.Seq, Prior: prior}
		for _, r := range []history.Record{
			{Kind: history.Event, Name: history.StateUpdated, Payload: history.Payload{NodeID: "n", State: state}},
			{Kind: history.Event, Name: history.CheckpointWritten, Payload: history.Payload{NodeID: "n", StateRef: state}},
		} {
			r.CreatedAt = x.Now
			b.Records = append(b.Records, r)
			x.Execution.Apply(r)
		}
		b.Execution = x.Execution
		if err := s.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		prior = history.Prior{Seq: x.Execution.StateSeq, State: state}
	}
	rs, err := s.Read(t.Context(), x.Execution.ID, x.Execution.Seq-1, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := history.Record{Payload: history.Payload{State: state}}
	want.Payload.NodeID, want.Name = "n", history.StateUpdated
	if got := rs[0].AppendPayload(nil, "x"); string(got) != string(want.AppendPayload(nil, "x")) {
		t.Error("the last state came back as another")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty.db")
	if err := openFile(t, empty, historysql.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	return fileSize(t, path) - fileSize(t, empty)
}

// The three ways in which a large state grows or changes a little with every node: what is stored is near the final
// state and the changes, not nodes times state.
func TestLargeStatesCostWhatChanges(t *testing.T) {
	t.Parallel()
	const kib = 1 << 10
	wide := map[string]any{}
	for i := range 10_000 {
		wide[fmt.Sprintf("member%05d", i)] = "a small value of its own"
	}
	for _, c := range []struct {
		name  string
		first map[string]any
		steps int
		next  func(step int, state map[string]any) map[string]any
		most  int64
	}{
		{
			"a large text beside a small member", map[string]any{"text": strings.Repeat("0123456789abcdef", 64*kib)}, 100,
			func(step int, state map[string]any) map[string]any {
				next := maps.Clone(state)
				next["last"] = float64(step)
				return next
			}, (1024 + 150 - 76) * kib,
		},
		{
			"a list that grows by small elements", map[string]any{"list": slices.Repeat([]any{strings.Repeat("x", 300)}, 250)}, 700,
			func(step int, state map[string]any) map[string]any {
				list := state["list"].([]any)
				return map[string]any{"list": append(slices.Clone(list), map[string]any{"id": float64(step), "text": strings.Repeat("x", 300)})}
			}, (2000 - 76) * kib, // of 310 KiB at the end
		},
		{
			"one of 10,000 small members", wide, 60,
			func(step int, state map[string]any) map[string]any {
				next := maps.Clone(state)
				next[fmt.Sprintf("member%05d", step)] = "another"
				return next
			}, (430 + 120 - 76) * kib,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			size := states(t, c.first, c.steps, c.next)
			t.Logf("%d KiB after %d nodes", size/kib, c.steps)
			if size > c.most {
				t.Errorf("%d nodes take %d KiB, more than %d", c.steps, size/kib, c.most/kib)
			}
		})
	}
}

// What a node gives out that it found in the state, with a little more, costs the little more: as its result, sent by a host,
// and as its output.
func TestWhatNodesGiveOutCostsWhatChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{Synchronous: historysql.Normal})
	x := historytest.NewTrace(t, "0f8fad5b-d9cb-469f-a165-70867728950e")
	var texts []string
	var prior history.Prior
	log := slices.Repeat([]any{strings.Repeat("x", 1000)}, 70)
	steps := soak.Size(300, 100, 300)
	for step := range steps {
		log = append(slices.Clone(log), map[string]any{"round": float64(step), "text": strings.Repeat("y", 1000)})
		sent, err := jsonvalue.Decode(jsonvalue.Append(nil, map[string]any{"log": log, "n": float64(step)}))
		if err != nil {
			t.Fatal(err)
		}
		given := sent.(map[string]any)
		b := history.Batch{ExecutionID: x.Execution.ID, ExpectedSeq: x.Execution.Seq, Prior: prior}
		for _, r := range []history.Record{
			{Kind: history.Event, Name: history.ActivityCompleted, Payload: history.Payload{NodeID: "n", Result: history.Some(sent)}},
			{Kind: history.Command, Name: history.CompleteNode, Payload: history.Payload{NodeID: "n", Output: map[string]any{"log": log}}},
			{Kind: history.Event, Name: history.StateUpdated, Payload: history.Payload{NodeID: "n", State: given}},
		} {
			r.CreatedAt = x.Now
			b.Records = append(b.Records, r)
			x.Execution.Apply(r)
			texts = append(texts, string(r.AppendPayload(nil, b.ExecutionID)))
		}
		b.Execution = x.Execution
		if err := s.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		prior = history.Prior{Seq: x.Execution.StateSeq, State: given}
	}
	for i, r := range mustRead(t, s, x.Execution.ID) {
		if got := string(r.AppendPayload(nil, x.Execution.ID)); got != texts[i] {
			t.Fatalf("record %d came back as another", i+1)
		}
	}
	// What was added stands in the result, the output and the state; and the state was written whole now and then.
	taken := count(t, path, "SELECT (SELECT sum(length(payload_json)) FROM history) + (SELECT sum(length(content)) FROM blobs)")
	if most := int64(3*steps*1700 + 3*len(log)*1100); taken > most {
		t.Errorf("%d steps take %d KiB, more than %d", steps, taken>>10, most>>10)
	}
}

// TestDamagedParts: whatever is changed about a value that is a part of a state is noticed, and named.
func TestDamagedParts(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"names":        `replace(payload_json, '"names":["log"]', '"names":["gone"]')`,
		"no names":     `replace(payload_json, '"names":["log"]', '"names":7')`,
		"state":        `replace(payload_json, '"state":2', '"state":1')`,
		"state after":  `replace(payload_json, '"state":2', '"state":4')`,
		"no state":     `replace(payload_json, '"state":2', '"state":"2"')`,
		"hash":         `replace(payload_json, '"hash":"', '"hash":"0')`,
		"changes":      `replace(payload_json, '"changes":{', '"changes":{"other":1,')`,
		"no changes":   `replace(payload_json, '"changes":', '"changed":')`,
		"unknown mark": `replace(payload_json, '"$part"', '"$parts"')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
			x := historytest.NewTrace(t, "a")
			log := slices.Repeat([]any{strings.Repeat("x", 1000)}, 70)
			one, two := map[string]any{"log": log}, map[string]any{"log": append(slices.Clone(log), "more")}
			appendStates(t, s, x, history.Prior{}, one)
			appendStates(t, s, x, history.Prior{Seq: x.Execution.StateSeq, State: one}, two)
			if err := s.Script("UPDATE history SET payload_json = " + script + " WHERE seq = 3"); err != nil {
				t.Fatal(err)
			}
			for _, first := range []int64{1, 3} {
				_, err := s.Read(t.Context(), "a", first, 0)
				wantDamage(t, err, 3)
			}
		})
	}
}

// large appends, to a new run, a result that the state holds too, and two small changes of that state.
func large(t testing.TB, s *historysql.Store, id string) *historytest.Trace {
	t.Helper()
	x := historytest.NewTrace(t, id)
	text := strings.Repeat("0123456789", 20_000)
	one := map[string]any{"text": text}
	two := map[string]any{"text": text, "n": 1.0}
	three := map[string]any{"text": text, "n": 2.0}
	appendStates(t, s, x, history.Prior{}, one)
	appendStates(t, s, x, history.Prior{Seq: x.Execution.StateSeq, State: one}, two)
	appendStates(t, s, x, history.Prior{Seq: x.Execution.StateSeq, State: two}, three)
	return x
}

func appendStates(t testing.TB, s *historysql.Store, x *historytest.Trace, prior history.Prior, state map[string]any) {
	t.Helper()
	b := history.Batch{ExecutionID: x.Execution.ID, ExpectedSeq: x.Execution.Seq, Prior: prior}
	for _, r := range []history.Record{
		{Kind: history.Event, Name: history.ActivityCompleted, Payload: history.Payload{NodeID: "n", Result: history.Some(state)}},
		{Kind: history.Event, Name: history.StateUpdated, Payload: history.Payload{NodeID: "n", State: state}},
	} {
		r.CreatedAt = x.Now
		b.Records = append(b.Records, r)
		x.Execution.Apply(r)
	}
	b.Execution = x.Execution
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// count gives the first column of a query's only row.
func count(t testing.TB, path, query string) int64 {
	t.Helper()
	r := &reference{t, plain(t, path)}
	defer r.conn.Close()
	var n int64
	r.scan(query, &n)
	return n
}

// TestLargeDelegateInputIsHealed: a projection that is made anew has the whole input of a delegate, also where the row
// only refers to the state.
func TestLargeDelegateInputIsHealed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	x := historytest.NewTrace(t, "a")
	state := map[string]any{"text": strings.Repeat("0123456789", 20_000), "n": 1.0}
	appendStates(t, s, x, history.Prior{}, state)
	b := history.Batch{ExecutionID: "a", ExpectedSeq: x.Execution.Seq, Prior: history.Prior{Seq: x.Execution.StateSeq, State: state}}
	b.Records = []history.Record{
		{Kind: history.Command, Name: history.ScheduleNode, CreatedAt: x.Now, Payload: history.Payload{NodeID: "d"}},
		{Kind: history.Event, Name: history.ActivityRequested, CreatedAt: x.Now, Payload: history.Payload{
			NodeID: "d", NodeType: "agent_delegate", AgentID: "agent", Protocol: "a2a", Correlation: "a:delegate:d", DelegateInput: state, Mode: "host_mediated",
		}},
	}
	for _, r := range b.Records {
		x.Execution.Apply(r)
	}
	b.Execution = x.Execution
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := s.Script("DELETE FROM executions"); err != nil {
		t.Fatal(err)
	}
	e, err := s.Execution(t.Context(), "a")
	if err != nil || !jsonvalue.Equal(e.DelegateInput, state) {
		t.Errorf("the input has %d members instead of %d, %v", len(e.DelegateInput), len(x.Execution.DelegateInput), err)
	}
}

// TestLargeValuesStandOnce: one value in several records of several runs takes one row of blobs, which the last run that
// is deleted takes along.
func TestLargeValuesStandOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	large(t, s, "a")
	large(t, s, "b")
	if n := count(t, path, "SELECT count(*) FROM blobs"); n != 1 {
		t.Errorf("%d blobs hold one value", n)
	}
	if n := count(t, path, "SELECT count(*) FROM blob_refs"); n != 2 {
		t.Errorf("%d references by two runs", n)
	}
	if n := count(t, path, "SELECT sum(length(payload_json)) FROM history"); n > 4000 {
		t.Errorf("the rows take %d bytes", n)
	}
	if n := count(t, path, "SELECT count(*) FROM history WHERE record_schema_version NOT IN (1, 1000)"); n != 0 {
		t.Errorf("%d rows of another version", n)
	}
	for i, id := range []string{"a", "b"} {
		x := historytest.NewTrace(t, id)
		var err error
		if x.Execution, err = s.Execution(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		x.Append(s, "E ExecutionCancelled")
		page, err := s.Prune(t.Context(), history.PruneQuery{Phases: []history.Phase{history.PhaseCancelled}, Limit: 10, DryRun: true})
		if err != nil || len(page.Trees) != 1 || (page.Trees[0].Bytes > 200_000) != (i == 1) {
			t.Errorf("run %s alone keeps %+v, %v", id, page.Trees, err)
		}
		page, err = s.Prune(t.Context(), history.PruneQuery{Phases: []history.Phase{history.PhaseCancelled}, Limit: 10})
		if err != nil || len(page.Trees) != 1 || page.Trees[0].ExecutionID != id {
			t.Fatalf("pruned %+v, %v", page, err)
		}
		if n := count(t, path, "SELECT count(*) FROM blobs"); n != int64(1-i) {
			t.Errorf("%d blobs without run %s", n, id)
		}
	}
	if n := count(t, path, "SELECT count(*) FROM blob_refs"); n != 0 {
		t.Errorf("%d references by no run", n)
	}
}

// TestManyLargeValuesAreDroppedInSteps deletes a run with more blobs than one transaction lets go of, beside one that
// holds some of them.
func TestManyLargeValuesAreDroppedInSteps(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, smallest)
	many := map[string]any{}
	for i := range 350 {
		many[fmt.Sprintf("k%03d", i)] = strings.Repeat(fmt.Sprintf("%03d", i), 100)
	}
	x := historytest.NewTrace(t, "many")
	appendStates(t, s, x, history.Prior{}, many)
	y := historytest.NewTrace(t, "few")
	few := map[string]any{"a": many["k000"], "b": many["k200"]}
	appendStates(t, s, y, history.Prior{}, few)
	x.Append(s, "E ExecutionCancelled")
	if page, err := s.Prune(t.Context(), history.PruneQuery{Phases: []history.Phase{history.PhaseCancelled}, Limit: 10}); err != nil || len(page.Trees) != 1 {
		t.Fatalf("pruned %+v, %v", page, err)
	}
	if n, refs := count(t, path, "SELECT count(*) FROM blobs"), count(t, path, "SELECT count(*) FROM blob_refs"); n != 2 || refs != 2 {
		t.Errorf("%d blobs and %d references are left", n, refs)
	}
	if rs := mustRead(t, s, "few"); !jsonvalue.Equal(rs[1].Payload.State, few) {
		t.Error("the other run lost a value")
	}
	if _, err := s.Execution(t.Context(), "many"); !errors.Is(err, problem.ExecutionNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestLargeRowsAreRefusedElsewhere: a row that an engine of the protocol reads is complete in itself; of any other it
// learns from the version that it cannot read it.
func TestLargeRowsAreRefusedElsewhere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	x := historytest.NewTrace(t, "a")
	const around = 64<<10 - len(`{"executionId":"a","nodeId":"n","state":{"s":""}}`)
	prior := history.Prior{}
	for _, n := range []int{10, around, around + 1, around + 2, 10, 200_000} {
		state := map[string]any{"s": strings.Repeat("x", n)}
		appendStates(t, s, x, prior, state)
		prior = history.Prior{Seq: x.Execution.StateSeq, State: state}
	}
	r := &reference{t, plain(t, path)}
	short := 0
	for _, record := range mustRead(t, s, "a") {
		var version int64
		var payload string
		r.scan(fmt.Sprintf("SELECT record_schema_version, payload_json FROM history WHERE seq = %d", record.Seq), &version, &payload)
		whole := string(record.AppendPayload(nil, "a"))
		switch err := history.CheckRowVersion("a", record.Seq, version); {
		case err == nil && payload != whole:
			t.Errorf("record %d is not complete: %s", record.Seq, payload)
		case err != nil && !errors.Is(err, problem.HistoryNewer):
			t.Errorf("record %d: %v", record.Seq, err)
		case (err != nil) != (len(whole) > 64<<10):
			t.Errorf("record %d of %d bytes has version %d", record.Seq, len(whole), version)
		case err != nil:
			short++
		}
	}
	if short != 7 { // one of "around", where the member "result" is one byte longer than "state", and all larger ones
		t.Errorf("%d rows are written short", short)
	}
}

// TestDamagedLargeValues: whatever is changed about a value that stands elsewhere is noticed, and named.
func TestDamagedLargeValues(t *testing.T) {
	t.Parallel()
	const unharmed = 1
	for name, c := range map[string]struct {
		script string
		seq    int64 // of the record that cannot be read any more
	}{
		"content":          {`UPDATE blobs SET content = replace(content, '01234', '01235')`, 1},
		"no content":       {`UPDATE blobs SET content = ''`, 1},
		"no JSON":          {`UPDATE blobs SET content = '"'`, 1},
		"missing":          {`DELETE FROM blobs`, 1},
		"base":             {`UPDATE history SET payload_json = replace(payload_json, '"set":{"n":1', '"set":{"n":7') WHERE seq = 4`, 6},
		"whole state":      {`UPDATE history SET payload_json = replace(payload_json, '"size":', '"size":1') WHERE seq = 2`, 4},
		"not a state":      {`UPDATE history SET payload_json = '{"executionId":"a","state":{}}' WHERE seq = 4`, 4},
		"both":             {`UPDATE history SET payload_json = '{"executionId":"a","state":{"$snapshot":{},"$delta":{}}}' WHERE seq = 4`, 4},
		"base after":       {`UPDATE history SET payload_json = replace(payload_json, '"base":4', '"base":6') WHERE seq = 6`, 6},
		"another base":     {`UPDATE history SET payload_json = replace(payload_json, '"base":4', '"base":2') WHERE seq = 6`, 6},
		"unknown mark":     {`UPDATE history SET payload_json = replace(payload_json, '"$blob"', '"$other"') WHERE seq = 3`, 3},
		"delta of nothing": {`UPDATE history SET payload_json = replace(payload_json, '"changes":{"set"', '"changes":{"sets"') WHERE seq = 4`, 4},
		"whole by name":    {`UPDATE history SET record_schema_version = 1 WHERE seq = 2`, 4},
		"no JSON row":      {`UPDATE history SET payload_json = '{' WHERE seq = 6`, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "runs.db")
			s := openFile(t, path, historysql.Options{})
			large(t, s, "a")
			if err := s.Script(c.script); err != nil {
				t.Fatal(err)
			}
			_, err := s.Read(t.Context(), "a", c.seq, 1)
			if name != "whole by name" && name != "another base" || err != nil {
				wantDamage(t, err, c.seq)
			}
			_, err = s.Read(t.Context(), "a", unharmed, 0)
			wantDamage(t, err, c.seq)
		})
	}
}

func wantDamage(t *testing.T, err error, seq int64) {
	t.Helper()
	if !errors.Is(err, problem.HistoryCorrupt) || !strings.Contains(err.Error(), fmt.Sprintf("record %d of run \"a\"", seq)) {
		t.Errorf("got %v, want damage at record %d", err, seq)
	}
}

// TestLargeValuesOfARunThatIsBeingDeleted: a reader that comes upon a run whose large values have just been deleted sees
// what it sees of a deleted run, and no damage.
func TestLargeValuesOfARunThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	s, _ := healthy(t)
	if err := s.Script("DELETE FROM blobs; UPDATE executions SET phase = 'deleted', problem = 'deleted' WHERE execution_id = 'large'"); err != nil {
		t.Fatal(err)
	}
	if records, err := s.Read(t.Context(), "large", 1, 0); err != nil || len(records) > 0 {
		t.Errorf("%d records, %v", len(records), err)
	}
}

// TestKeptLargeValues reads a file with records written short, which is never made again.
func TestKeptLargeValues(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 100)
	one := map[string]any{"text": text, "$n": 0.0, "list": []any{"a"}}
	two := map[string]any{"text": text, "$n": 1.0, "list": []any{"a", "b"}}
	keep(t, "large.sql", func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "runs.db")
		s, err := historysql.Open(t.Context(), path, smallest)
		if err != nil {
			t.Fatal(err)
		}
		x := historytest.NewTrace(t, "large")
		appendStates(t, s, x, history.Prior{}, one)
		appendStates(t, s, x, history.Prior{Seq: x.Execution.StateSeq, State: one}, two)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return dump(t, path)
	})
	s := openFile(t, load(t, "large.sql"), historysql.Options{})
	records := mustRead(t, s, "large")
	if len(records) != 4 {
		t.Fatalf("%d records", len(records))
	}
	for i, want := range []map[string]any{one, two} {
		if got := records[2*i+1].Payload.State; !jsonvalue.Equal(got, want) {
			t.Errorf("state %d is %v", i, got)
		}
		if got := records[2*i].Payload.Result.Value; !jsonvalue.Equal(got, want) {
			t.Errorf("result %d is %v", i, got)
		}
	}
}

// TestProjectionOfLargeRecords: a run whose projection is lost is folded anew from rows that are written short.
func TestProjectionOfLargeRecords(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	x := large(t, s, "a")
	list := slices.Repeat([]any{strings.Repeat("x", 1000)}, 100)
	state := map[string]any{"list": list}
	appendStates(t, s, x, history.Prior{}, state)
	r := history.Record{Kind: history.Event, Name: history.ActivityRequested, CreatedAt: x.Now, Payload: history.Payload{
		NodeID: "d", NodeType: "agent_delegate", AgentID: "coder", Protocol: "a2a", Correlation: "c",
		DelegateInput: map[string]any{"task": strings.Repeat("do this ", 20_000), "list": append(slices.Clone(list), "and this")},
	}}
	b := history.Batch{
		ExecutionID: "a", ExpectedSeq: x.Execution.Seq, Records: []history.Record{r},
		Prior: history.Prior{Seq: x.Execution.StateSeq, State: state},
	}
	x.Execution.Apply(r)
	b.Execution = x.Execution
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for _, readOnly := range []bool{true, false} {
		if err := s.Script("DELETE FROM executions"); err != nil {
			t.Fatal(err)
		}
		again := openFile(t, path, historysql.Options{ReadOnly: readOnly})
		e, err := again.Execution(t.Context(), "a")
		if err != nil || string(e.AppendText(nil)) != string(x.Execution.AppendText(nil)) {
			t.Errorf("read only %t: got %v", readOnly, err)
		}
	}
}

// BenchmarkLargeState measures a node's commit with a state of 1 MiB of which little changes: one text, many small objects in a
// list that grows and that the node gives out whole, many small members. The bytes are those that a node adds to the file.
func BenchmarkLargeState(b *testing.B) {
	list := make([]any, 8000)
	wide := map[string]any{}
	for i := range list {
		list[i] = map[string]any{"id": float64(i), "name": "customer", "text": "opened a ticket about an invoice, and more of the kind, of some length"}
		wide[fmt.Sprintf("member%05d", i)] = "a small value of its own, about as long as the elements of the list are, which is long enough for it"
	}
	for name, state := range map[string]map[string]any{
		"text":    {"text": strings.Repeat("0123456789abcdef", 64<<10)},
		"list":    {"list": list},
		"members": wide,
	} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "runs.db")
			s := openFile(b, path, historysql.Options{})
			x := historytest.NewTrace(b, "a")
			appendStates(b, s, x, history.Prior{}, state)
			prior := history.Prior{Seq: x.Execution.StateSeq, State: state}
			grown := func() int64 {
				if err := s.Script("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
					b.Fatal(err)
				}
				info, err := os.Stat(path)
				if err != nil {
					b.Fatal(err)
				}
				return info.Size()
			}
			before := grown()
			n := 0.0
			b.ReportAllocs()
			for b.Loop() {
				n++
				next := maps.Clone(prior.State)
				next["n"] = n
				if l, ok := next["list"].([]any); ok {
					next["list"] = append(slices.Clone(l), "one more element")
				}
				given := map[string]any{"n": n}
				if list, ok := next["list"]; ok {
					given["list"] = list
				}
				h := history.Batch{ExecutionID: "a", ExpectedSeq: x.Execution.Seq, Prior: prior}
				for _, r := range []history.Record{
					{Kind: history.Event, Name: history.ActivityCompleted, Payload: history.Payload{Result: history.Some(given)}},
					{Kind: history.Command, Name: history.CompleteNode, Payload: history.Payload{Output: given}},
					{Kind: history.Event, Name: history.StateUpdated, Payload: history.Payload{State: next}},
					{Kind: history.Event, Name: history.CheckpointWritten, Payload: history.Payload{StateRef: next}},
				} {
					r.CreatedAt, r.Payload.NodeID = x.Now, "n"
					h.Records = append(h.Records, r)
					x.Execution.Apply(r)
				}
				h.Execution = x.Execution
				if err := s.Append(b.Context(), h); err != nil {
					b.Fatal(err)
				}
				prior = history.Prior{Seq: x.Execution.StateSeq, State: next}
			}
			b.StopTimer()
			b.ReportMetric(float64(grown()-before)/n, "B/node")
		})
	}
}
