package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const burst = 120

// collector is a workflow that asks the host for burst results, one after the other, and keeps them in a list.
func collector(name string) string {
	return fmt.Sprintf(`{"document":{"schema":"s","name":%q,"version":"1"},`+
		`"state_schema":{"type":"object","properties":{"l":{"type":"array","reducer":"append"}}},`+
		`"nodes":[{"id":"a","type":"start"},{"id":"s","type":"step","config":{"handler":"h"}},`+
		`{"id":"more","type":"switch","config":{"cases":[{"when":"(.l | length) < %d","target":"s"}],"default":"z"}},{"id":"z","type":"end"}],`+
		`"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"s"},{"source":"s","target":"more"}]}`, name, burst)
}

const parent = `{"document":{"schema":"s","name":"parent","version":"1"},"state_schema":{"type":"object","properties":{"l":{"type":"array"}}},` +
	`"nodes":[{"id":"a","type":"start"},{"id":"v","type":"subworkflow","config":{"workflow_ref":"child","input_mapping":{}}},{"id":"z","type":"end"}],` +
	`"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"v"},{"source":"v","target":"z"}]}`

func submitNumber(id int, run string, n int) string {
	return toolCall(id, "workflow_submit_activity", fmt.Sprintf(`{"execution_id":%q,"node_id":"s","outcome":{"ok":true,"result":{"l":[%d]}}}`, run, n))
}

// TestCallsOvertakeEachOther sends the results of three runs in one burst, without waiting for an answer: none is lost, and each run
// has them in the order in which they were sent, also where they name now the run and now its subworkflow.
func TestCallsOvertakeEachOther(t *testing.T) {
	t.Parallel()
	p := spawn(t, "--store", "memory", "--full-answers")
	p.write(hello)
	p.read()
	p.write(toolCall(1, "workflow_start", `{"execution_id":"c","activity_execution_mode":"host_mediated","definition":`+collector("child")+`}`))
	p.read()
	p.write(toolCall(1, "workflow_start", `{"execution_id":"p","activity_execution_mode":"host_mediated","definition":`+parent+`}`))
	if got := structured(p.read()); got["status"] != "awaiting_activity" {
		t.Fatal(got)
	}
	go func() {
		var lines []string
		lines = append(lines, toolCall(2, "workflow_start", `{"execution_id":"x","activity_execution_mode":"host_mediated","definition":`+collector("x")+`}`)) // a start is ordered too
		for n := range burst {
			lines = append(lines, submitNumber(1000+n, "c", n), submitNumber(2000+n, "x", n), submitNumber(3000+n, []string{"p", "p:sub:v"}[n%2], n))
		}
		p.stdin.Write([]byte(strings.Join(lines, "\n") + "\n"))
	}()
	seqs := map[string][]float64{}
	answered := map[float64]map[string]any{}
	for range 1 + 3*burst {
		m := p.read()
		got := structured(m)
		if m["result"].(map[string]any)["isError"] == true {
			t.Fatalf("refused: %v", m)
		}
		answered[m["id"].(float64)] = got
		run, _ := got["execution_id"].(string)
		seq, _ := got["seq"].(float64)
		if seq < 1 {
			t.Fatalf("an answer without seq: %v", got)
		}
		seqs[run] = append(seqs[run], seq)
	}
	for i, run := range []string{"c", "x", "p"} {
		if run == "p" {
			p.write(toolCall(4, "workflow_status", `{"execution_id":"p:sub:v"}`))
			answered[3000+burst-1] = structured(p.read())
		}
		final, _ := answered[float64(1000*(i+1)+burst-1)]["final_state"].(map[string]any)
		list, _ := final["l"].([]any)
		if len(list) != burst || !slices.IsSortedFunc(list, func(a, b any) int { return int(a.(float64) - b.(float64)) }) {
			t.Errorf("run %s has %v", run, list)
		}
	}
}

// TestCancelBetweenSubmits: what was sent before a cancel counts, and what was sent after it is refused.
func TestCancelBetweenSubmits(t *testing.T) {
	t.Parallel()
	p := spawn(t, "--store", "memory")
	p.write(hello)
	p.read()
	for n := range 20 {
		run := fmt.Sprint("r", n)
		p.write(toolCall(1, "workflow_start", fmt.Sprintf(`{"execution_id":%q,"activity_execution_mode":"host_mediated","definition":%s}`, run, collector("x"))))
		p.read()
		p.write(submitNumber(2, run, 0) + "\n" + toolCall(3, "workflow_cancel", fmt.Sprintf(`{"execution_id":%q}`, run)) + "\n" + submitNumber(4, run, 1))
		for range 3 {
			m := p.read()
			got := structured(m)
			final, _ := got["final_state"].(map[string]any)
			switch refused := m["result"].(map[string]any)["isError"] == true; {
			case refused != (m["id"] == 4.0):
				t.Errorf("answered %v", m)
			case m["id"] == 3.0 && fmt.Sprint(final["l"]) != "[0]":
				t.Errorf("cancelled with %v", final)
			}
		}
	}
}

// TestWaitingCallHoldsNothingUp: a call that waits for a run lets the next call about the run through.
func TestWaitingCallHoldsNothingUp(t *testing.T) {
	t.Parallel()
	p := spawn(t, "--store", "memory")
	p.write(hello)
	p.read()
	p.write(toolCall(1, "workflow_start", `{"execution_id":"n","wait_ms":60000,"definition":`+nap(patience)+`}`),
		toolCall(2, "workflow_status", `{"execution_id":"n","wait_ms":60000}`), toolCall(3, "workflow_cancel", `{"execution_id":"n"}`))
	for range 3 {
		if m := p.read(); m["result"].(map[string]any)["isError"] == true {
			t.Errorf("answered %v", m)
		}
	}
	p.stdin.Close()
	p.end()
}

// fan is a workflow of branches that each ask the host for one result.
func fan(branches int) string {
	var list, nodes, edges []string
	for i := range branches {
		list = append(list, fmt.Sprintf(`{"name":"b%d","entry":"s%[1]d"}`, i))
		nodes = append(nodes, fmt.Sprintf(`{"id":"s%d","type":"step","config":{"handler":"h"}}`, i))
		edges = append(edges, fmt.Sprintf(`{"source":"s%d","target":"z"}`, i))
	}
	return `{"document":{"schema":"s","name":"fan","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"a","type":"start"},` +
		`{"id":"p","type":"parallel","config":{"join":"all","branches":[` + strings.Join(list, ",") + `]}},{"id":"z","type":"end"},` + strings.Join(nodes, ",") +
		`],"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"p"},{"source":"p","target":"z"},` + strings.Join(edges, ",") + `]}`
}

// TestParallelSubmitsContradictEachOther: of five submits sent at once, an answer with a higher seq never shows more that is pending, and
// two with the same seq show the same.
func TestParallelSubmitsContradictEachOther(t *testing.T) {
	t.Parallel()
	p := spawn(t, "--store", "memory")
	p.write(hello)
	p.read()
	for n := range 20 {
		run := fmt.Sprint("r", n)
		p.write(toolCall(1, "workflow_start", fmt.Sprintf(`{"execution_id":%q,"activity_execution_mode":"host_mediated","definition":%s}`, run, fan(5))))
		if got := structured(p.read()); got["status"] != "awaiting_activity" {
			t.Fatal(got)
		}
		for i := range 5 {
			p.write(toolCall(10+i, "workflow_submit_activity", fmt.Sprintf(`{"execution_id":%q,"node_id":"s%d","idempotency_key":"%[1]s:s%[2]d#1.1","outcome":{"ok":true}}`, run, i)))
		}
		type answer struct {
			seq     float64
			pending int
		}
		var answers []answer
		for range 5 {
			got := structured(p.read())
			pending, _ := got["pending"].([]any)
			seq, _ := got["seq"].(float64)
			answers = append(answers, answer{seq, len(pending)})
		}
		slices.SortFunc(answers, func(a, b answer) int { return int(a.seq - b.seq) })
		for i := 1; i < len(answers); i++ {
			if a, b := answers[i-1], answers[i]; a.seq == 0 || b.pending > a.pending || a.seq == b.seq && a.pending != b.pending {
				t.Errorf("run %s: %v", run, answers)
			}
		}
		if answers[4].pending != 0 {
			t.Errorf("run %s: the newest answer is none of the end: %v", run, answers)
		}
	}
}
