package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// attemptsOf reads records.
func attemptsOf(facts map[string]nodeFacts, records []history.Record) *attempts {
	tally := newAttempts("r1", facts)
	for i := range records {
		tally.record(&records[i])
	}
	return tally
}

// tallied are the attempts of the sample records.
func tallied() *attempts {
	return attemptsOf(map[string]nodeFacts{
		"classify": {nodeType: "llm_call", by: "small"}, "search": {nodeType: "tool_call", by: "web/search"},
	}, sampleRecords())
}

func TestWriteRecordTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := writeTable(&out, append(recordHeading(), recordRows(sampleRecords(), tallied(), &stateTrail{}, detailWidth)...)); err != nil {
		t.Fatal(err)
	}
	requireGolden(t, "history", out.String())
}

func TestWriteRecordLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	records := sampleRecords()
	if err := writeRecordLines(&out, "r1", append(records[:2:2], records[6:10]...), tallied()); err != nil {
		t.Fatal(err)
	}
	requireGolden(t, "history_json", out.String())
}

func TestWriteAttempts(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	tally := tallied()
	if err := tally.write(&out, tally.from(1, ""), true, 0); err != nil {
		t.Fatal(err)
	}
	if err := tally.writeLines(&out, tally.from(1, "")); err != nil {
		t.Fatal(err)
	}
	requireGolden(t, "attempts", out.String())

	// Only what the records from a number on belong to.
	if list := tally.from(9, ""); len(list) != 2 || list[0].Number != 2 {
		t.Errorf("from 9: %d attempts", len(list))
	}
}

// TestRepairIsShown: what was wrong with the first attempt, what it had made, and that the second one is its repair.
func TestRepairIsShown(t *testing.T) {
	t.Parallel()
	type P = history.Payload
	records := recordsOf(
		event(history.ActivityRequested, P{NodeID: "ask", NodeType: "llm_call"}),
		event(history.ActivityFailed, P{
			NodeID: "ask", Code: "OUTPUT_SCHEMA_VIOLATION", Error: "/n must be number", Attempt: 1, WillRetry: true,
			Usage:  map[string]any{"model": "m", "prompt_tokens": 10.0, "completion_tokens": 2.0},
			Repair: map[string]any{"answer": map[string]any{"n": "x"}, "violation": "/n must be number"},
		}),
		event(history.ActivityRequested, P{NodeID: "ask", NodeType: "llm_call", Attempt: 2}),
		event(history.ActivityCompleted, P{NodeID: "ask", Usage: map[string]any{
			"model": "m", "prompt_tokens": 15.0, "completion_tokens": 3.0, "repaired": true,
		}}),
		event(history.ActivityRequested, P{NodeID: "ask", Visit: 2, NodeType: "llm_call"}),
		event(history.ActivityFailed, P{NodeID: "ask", Visit: 2, Code: "WRONG", Error: "no", Attempt: 1, WillRetry: true, Repair: map[string]any{"half": true}}),
		event(history.ActivityRequested, P{NodeID: "ask", Visit: 2, NodeType: "llm_call", Attempt: 2}),
		event(history.ActivityFailed, P{NodeID: "ask", Visit: 2, Code: "WRONG", Error: "no", Attempt: 2, WillRetry: true}),
		event(history.ActivityRequested, P{NodeID: "ask", Visit: 2, NodeType: "llm_call", Attempt: 3}),
	)
	tally := attemptsOf(nil, records)
	var lines []string
	for _, r := range records {
		lines = append(lines, tally.recordDetail(r, &stateTrail{}, detailWidth))
	}
	if want := "OUTPUT_SCHEMA_VIOLATION /n must be number sent back"; !strings.HasSuffix(lines[1], want) {
		t.Errorf("the record of the first attempt is told as %q", lines[1])
	}
	var out bytes.Buffer
	if err := tally.write(&out, tally.from(1, ""), true, 0); err != nil {
		t.Fatal(err)
	}
	const want = `ACTIVITY    TYPE      ATTEMPT  BY  TOOK  TOKENS IN  OUT  OUTCOME
ask         llm_call  1        m   1ms   10         2    failed, sent back: /n must be number
  answered                                                 {"n":"x"}
ask         llm_call  2        m   1ms   15         3    repair completed
ask#2       llm_call  1        -   1ms   -          -    failed, sent back: WRONG no
  gave                                                     {"half":true}
ask#2       llm_call  2        -   1ms   -          -    repair failed, retried: WRONG no
ask#2       llm_call  3        -   -     -          -    open
5 attempts, 4ms from request to outcome, 25 tokens in, 5 out
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	if err := tally.writeLines(&out, tally.from(1, "")[:2]); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`"outcome":"failed",`, `"outcome":"completed",`} {
		line := strings.Split(out.String(), "\n")[i]
		if repairs := strings.Contains(line, `"repairs":true`); !strings.Contains(line, want) || repairs != (i == 1) || strings.Contains(line, `"repair":{"answer":{"n":"x"}`) != (i == 0) {
			t.Errorf("line %d: %s", i+1, line)
		}
	}
}

// TestAttemptsThatOverlap: visits and branches are kept apart, and what nobody waits for any more is not open.
func TestAttemptsThatOverlap(t *testing.T) {
	t.Parallel()
	type P = history.Payload
	branch := func(name string) *history.ParallelSpan {
		return &history.ParallelSpan{ParallelNodeID: "fork", BranchName: name}
	}
	tally := attemptsOf(nil, recordsOf(
		event(history.ActivityRequested, P{NodeID: "a", NodeType: "step"}),
		event(history.ActivityCompleted, P{NodeID: "a", Replayed: true}),
		event(history.ActivityCompleted, P{NodeID: "a"}),
		event(history.ActivityCompleted, P{NodeID: "a"}),
		event(history.ActivityRequested, P{NodeID: "a", Visit: 2, NodeType: "step", Mode: "host_mediated"}),
		event(history.NodeScheduled, P{NodeID: "fork"}),
		event(history.ParallelForked, P{NodeID: "fork", BranchNames: []string{"x", "y"}}),
		event(history.ActivityRequested, P{NodeID: "b", NodeType: "agent_delegate", AgentID: "coder", Span: branch("x")}),
		event(history.ActivityRequested, P{NodeID: "b", Visit: 2, NodeType: "agent_delegate", AgentID: "coder", Span: branch("y")}),
		event(history.ActivityRequested, P{NodeID: "b", Visit: 2, NodeType: "agent_delegate", AgentID: "coder", Span: branch("y"), ExternalTask: "t1"}),
		event(history.ActivityCompleted, P{NodeID: "b", Visit: 2, Span: branch("y")}),
		event(history.ActivityRequested, P{NodeID: "c", NodeType: "step", Span: branch("y")}),
		event(history.ActivityFailed, P{NodeID: "c", Attempt: 1, Error: "no", WillRetry: true}), // as executors' outcomes are recorded
		event(history.ActivityRequested, P{NodeID: "c", NodeType: "step", Span: branch("y"), Attempt: 2}),
		event(history.ActivityCompleted, P{NodeID: "c"}),
		event(history.ParallelBranchCancelled, P{NodeID: "fork", BranchName: "x"}),
		event(history.ExecutionCancelled, P{}),
	))
	var out bytes.Buffer
	if err := tally.write(&out, tally.from(1, ""), true, 0); err != nil {
		t.Fatal(err)
	}
	const want = `ACTIVITY  TYPE            ATTEMPT  BY      TOOK  TOKENS IN  OUT  OUTCOME
a         step            1        -       2ms   -          -    completed
a#2       step            1        (host)  -     -          -    dropped
b         agent_delegate  1        coder   -     -          -    dropped
b#2       agent_delegate  1        coder   2ms   -          -    completed
c         step            1        -       1ms   -          -    failed, retried: no
c         step            2        -       1ms   -          -    completed
6 attempts, 6ms from request to outcome
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// TestThePageShowsARepair: the table that docs/executors.md shows is that of such attempts.
func TestThePageShowsARepair(t *testing.T) {
	t.Parallel()
	answer := map[string]any{"text": "Heat pumps work."}
	usage := func(in, out float64) map[string]any {
		return map[string]any{"model": "gpt-4.1-mini", "prompt_tokens": in, "completion_tokens": out}
	}
	type P = history.Payload
	repaired := usage(475, 11)
	repaired["repaired"] = true
	records := recordsOf(
		event(history.ActivityRequested, P{NodeID: "summarize", NodeType: "llm_call"}),
		event(history.ActivityFailed, P{
			NodeID: "summarize", Code: "OUTPUT_SCHEMA_VIOLATION", Attempt: 1, WillRetry: true, Usage: usage(410, 12),
			Repair: map[string]any{"answer": answer, "violation": `the answer breaks output_schema: / must have the member "summary"`},
		}),
		event(history.ActivityRequested, P{NodeID: "summarize", NodeType: "llm_call", Attempt: 2}),
		event(history.ActivityCompleted, P{NodeID: "summarize", Usage: repaired}),
	)
	for i, after := range []time.Duration{0, 812 * time.Millisecond, 812 * time.Millisecond, 1452 * time.Millisecond} {
		records[i].CreatedAt = noon.Add(after)
	}
	tally := attemptsOf(nil, records)
	var out bytes.Buffer
	if err := tally.write(&out, tally.from(1, ""), true, 0); err != nil {
		t.Fatal(err)
	}
	if want := pageBlock(t, "docs/executors.md", "text", "ACTIVITY"); !strings.HasPrefix(out.String(), want) {
		t.Errorf("got\n%sthe page shows\n%s", out.String(), want)
	}
}
