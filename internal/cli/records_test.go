package cli

import (
	"bytes"
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
)

// tallied gives the attempts of the sample records, and which record ended which.
func tallied() (*attempts, map[int64]*attempt) {
	tally := newAttempts(map[string]nodeFacts{
		"classify": {nodeType: "llm_call", by: "small"}, "search": {nodeType: "tool_call", by: "web/search"},
	})
	ended := map[int64]*attempt{}
	for _, r := range sampleRecords() {
		if t := tally.apply(r); t != nil {
			ended[r.Seq] = t
		}
	}
	return tally, ended
}

func TestWriteRecordTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	_, ended := tallied()
	if err := writeRecordTable(&out, sampleRecords(), ended, true); err != nil {
		t.Fatal(err)
	}
	requireGolden(t, "history", out.String())
}

func TestWriteRecordLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	_, ended := tallied()
	records := sampleRecords()
	if err := writeRecordLines(&out, "r1", append(records[:2:2], records[6:10]...), ended); err != nil {
		t.Fatal(err)
	}
	requireGolden(t, "history_json", out.String())
}

func TestWriteAttempts(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	tally, _ := tallied()
	if err := writeAttemptTable(&out, tally.from(1)); err != nil {
		t.Fatal(err)
	}
	if err := writeAttemptLines(&out, "r1", tally.from(1)); err != nil {
		t.Fatal(err)
	}
	requireGolden(t, "attempts", out.String())

	// Only what the records from a number on belong to.
	if list := tally.from(9); len(list) != 2 || list[0].number != 2 {
		t.Errorf("from 9: %d attempts", len(list))
	}
}

// TestRepairIsShown: both answers of an attempt whose first one broke the schema, with what was wrong.
func TestRepairIsShown(t *testing.T) {
	t.Parallel()
	type P = history.Payload
	first := map[string]any{"model": "m", "prompt_tokens": 10.0, "completion_tokens": 2.0, "violation": "/n must be number"}
	second := map[string]any{"model": "m", "prompt_tokens": 15.0, "completion_tokens": 3.0}
	tally := newAttempts(nil)
	for _, r := range recordsOf(
		event(history.ActivityRequested, P{NodeID: "ask", NodeType: "llm_call"}),
		event(history.ActivityCompleted, P{NodeID: "ask", Usage: map[string]any{
			"model": "m", "prompt_tokens": 25.0, "completion_tokens": 5.0, "repaired": true, "answers": []any{first, second},
		}}),
		event(history.ActivityRequested, P{NodeID: "ask", Visit: 2, NodeType: "llm_call"}),
		event(history.ActivityFailed, P{NodeID: "ask", Visit: 2, Code: "OUTPUT_SCHEMA_VIOLATION", Error: "no", Usage: map[string]any{
			"model": "m", "answers": []any{first, first},
		}}),
	) {
		tally.apply(r)
	}
	var out bytes.Buffer
	if err := writeAttemptTable(&out, tally.from(1)); err != nil {
		t.Fatal(err)
	}
	const want = `ACTIVITY    TYPE      ATTEMPT  BY  TOOK  TOKENS IN  OUT  OUTCOME
ask         llm_call  1        m   1ms   25         5    completed after a repair
  answer 1                     m         10         2    sent back: /n must be number
  answer 2                     m         15         3    taken
ask#2       llm_call  1        m   1ms   -          -    failed: OUTPUT_SCHEMA_VIOLATION no
  answer 1                     m         10         2    sent back: /n must be number
  answer 2                     m         10         2    refused: /n must be number
2 attempts, 2ms of work, 25 tokens in, 5 out
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// TestAttemptsThatOverlap: visits and branches are kept apart, and what nobody waits for any more is not open.
func TestAttemptsThatOverlap(t *testing.T) {
	t.Parallel()
	type P = history.Payload
	branch := func(name string) *history.ParallelSpan {
		return &history.ParallelSpan{ParallelNodeID: "fork", BranchName: name}
	}
	tally := newAttempts(nil)
	for _, r := range recordsOf(
		event(history.ActivityRequested, P{NodeID: "a", NodeType: "step"}),
		event(history.ActivityCompleted, P{NodeID: "a", Replayed: true}),
		event(history.ActivityCompleted, P{NodeID: "a"}),
		event(history.ActivityCompleted, P{NodeID: "a"}),
		event(history.ActivityRequested, P{NodeID: "a", Visit: 2, NodeType: "step", Mode: "host_mediated"}),
		event(history.ActivityRequested, P{NodeID: "b", NodeType: "agent_delegate", AgentID: "coder", Span: branch("x")}),
		event(history.ActivityRequested, P{NodeID: "b", NodeType: "agent_delegate", AgentID: "coder", Span: branch("y")}),
		event(history.ActivityRequested, P{NodeID: "b", NodeType: "agent_delegate", AgentID: "coder", Span: branch("y"), ExternalTask: "t1"}),
		event(history.ActivityCompleted, P{NodeID: "b", Span: branch("y"), Usage: map[string]any{"repaired": true}}),
		event(history.ParallelBranchCancelled, P{NodeID: "fork", BranchName: "x"}),
		event(history.ExecutionCancelled, P{}),
	) {
		tally.apply(r)
	}
	var out bytes.Buffer
	if err := writeAttemptTable(&out, tally.from(1)); err != nil {
		t.Fatal(err)
	}
	const want = `ACTIVITY  TYPE            ATTEMPT  BY      TOOK  TOKENS IN  OUT  OUTCOME
a         step            1        -       2ms   -          -    completed
a#2       step            1        (host)  -     -          -    dropped
b         agent_delegate  1        coder   -     -          -    dropped
b         agent_delegate  1        coder   2ms   -          -    completed after a repair
4 attempts, 4ms of work
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
