package main

import (
	"fmt"
	"testing"
	"time"
)

// naps is a workflow of two waits, one after the other.
func naps(d time.Duration) string {
	return fmt.Sprintf(`{"document":{"schema":"s","name":"naps","version":"1"},"state_schema":{"type":"object"},`+
		`"nodes":[{"id":"a","type":"start"},{"id":"v","type":"wait","config":{"kind":"duration","duration_ms":%[1]d}},`+
		`{"id":"w","type":"wait","config":{"kind":"duration","duration_ms":%[1]d}},{"id":"z","type":"end"}],`+
		`"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"v"},{"source":"v","target":"w"},{"source":"w","target":"z"}]}`, d.Milliseconds())
}

const asks = `{"document":{"schema":"s","name":"asks","version":"1"},"state_schema":{"type":"object"},` +
	`"nodes":[{"id":"a","type":"start"},{"id":"q","type":"interrupt","config":{"prompt":"?","resume_schema":{"type":"object"}}},{"id":"z","type":"end"}],` +
	`"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"q"},{"source":"q","target":"z"}]}`

// Progress notifications come between the call and its answer, with the token of the call and a rising number.
func TestProgressOverStdio(t *testing.T) {
	t.Parallel()
	p := spawn(t, "--store", "memory")
	p.write(hello, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"p7"},`+
		`"name":"workflow_start","arguments":{"wait_ms":20000,"definition":%s}}}`, naps(2*time.Second)))
	p.read()
	last, told := 0.0, 0
	for {
		m := p.read()
		if m["id"] != nil {
			if structured(m)["status"] != "completed" || told < 2 {
				t.Errorf("answered %v after %d notifications", m, told)
			}
			break
		}
		params, _ := m["params"].(map[string]any)
		progress, _ := params["progress"].(float64)
		if m["method"] != "notifications/progress" || params["progressToken"] != "p7" || progress <= last || params["message"] == "" {
			t.Errorf("told %v after %v", m, last)
		}
		last, told = progress, told+1
	}
	p.stdin.Close()
	p.end() // says if anything followed
}

// A waiting status call answers when another process changes the run, even if the run waits for a person.
func TestStatusSeesAnotherProcess(t *testing.T) {
	t.Parallel()
	db := database(t)
	a, b := spawn(t, "--store-path", db), spawn(t, "--store-path", db)
	a.write(hello, toolCall(1, "workflow_start", `{"execution_id":"q","definition":`+asks+`}`), toolCall(2, "workflow_status", `{"execution_id":"q"}`))
	a.read()
	answers := map[any]map[string]any{}
	for range 2 {
		m := a.read()
		answers[m["id"]] = structured(m)
	}
	for answers[2.0]["phase"] != "interrupted" { // the two calls run at once
		a.write(toolCall(2, "workflow_status", `{"execution_id":"q"}`))
		answers[2.0] = structured(a.read())
	}
	seq := answers[2.0]["seq"]
	a.write(toolCall(3, "workflow_status", fmt.Sprintf(`{"execution_id":"q","wait_ms":30000,"since_seq":%v}`, seq)),
		`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
	if m := a.read(); m["id"] != 4.0 {
		t.Fatalf("answered %v before anything changed", m)
	}
	begun := time.Now()
	b.write(hello, toolCall(1, "workflow_resume", `{"execution_id":"q","interrupt_id":"q:q#1","resume_payload":{"ok":true}}`))
	b.read()
	if got := structured(b.read()); got["status"] != "completed" {
		t.Fatalf("resumed: %v", got)
	}
	if got := structured(a.read()); got["phase"] != "completed" {
		t.Errorf("the waiting call answered %v", got)
	}
	t.Logf("seen %s after the resume was sent", time.Since(begun))
	// The answer to the resume was lost, and the host repeats it at the other server.
	a.write(toolCall(5, "workflow_resume", `{"execution_id":"q","interrupt_id":"q:q#1","resume_payload":{"ok":true}}`))
	if got := structured(a.read()); got["status"] != "completed" || got["repeated"] != true {
		t.Errorf("resumed again: %v", got)
	}
}

// A host that cancels a call does not cancel the run, and receives no answer to the call.
func TestCancelledCall(t *testing.T) {
	t.Parallel()
	p := spawn(t, "--store", "memory")
	p.write(hello,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"workflow_start","arguments":{"execution_id":"n","wait_ms":60000,"definition":`+naps(2*time.Second)+`}}}`)
	p.read()
	for p.read()["method"] != "notifications/progress" { // the run is under way
	}
	p.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}`,
		toolCall(2, "workflow_status", `{"execution_id":"n","wait_ms":20000}`))
	m := p.read()
	for m["method"] == "notifications/progress" { // what was under way already
		m = p.read()
	}
	if m["id"] != 2.0 || structured(m)["phase"] != "completed" {
		t.Errorf("answered %v", m)
	}
	p.stdin.Close()
	p.end()
}
