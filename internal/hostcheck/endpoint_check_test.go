package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTheEndpointSpeaksThreeAPIs: in each of the three kinds of requests, the scripted model starts the workflow, follows next of a result, whether
// it comes as JSON or as text, and sends another result after a rejection.
func TestTheEndpointSpeaksThreeAPIs(t *testing.T) {
	t.Parallel()
	const (
		named    = `{"status":"awaiting_activity","next":{"tool":"workflow_submit_activity","arguments":{"execution_id":"r","node_id":"classify","outcome":"<object>"}}}`
		rejected = "SUBMIT_VALIDATION_ERROR: …\nNext: Nothing was recorded. Correct the result and send it again."
		text     = "Execution r awaiting_activity.\nNext: workflow_submit_activity {\"execution_id\":\"r\",\"node_id\":\"classify\"}\nDo it."
	)
	list := func(each func(result string) object) func([]string) []object {
		return func(results []string) (items []object) {
			for _, result := range results {
				items = append(items, each(result))
			}
			return items
		}
	}
	for path, api := range map[string]struct {
		tool  object // the offer
		items string // the field with the results
		of    func(results []string) []object
	}{
		"/v1/chat/completions": {object{"type": "function", "function": object{"name": "x_workflow_start"}}, "messages",
			list(func(result string) object { return object{"role": "tool", "content": result} })},
		"/v1/responses": {object{"type": "namespace", "name": "x", "tools": []object{{"type": "function", "name": "workflow_start"}}}, "input",
			list(func(result string) object {
				return object{"type": "function_call_output", "output": []object{{"type": "input_text", "text": "Output:\n" + result}}}
			})},
		"/v1/messages": {object{"name": "x_workflow_start"}, "messages",
			list(func(result string) object {
				return object{"role": "user", "content": []object{{"type": "tool_result", "content": []object{{"type": "text", "text": result}}}}}
			})},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			m := &model{start: object{"definition_ref": "lighthouse"}, outcomes: map[string][]object{"classify": {misfit, sure}}}
			server := httptest.NewServer(&endpoint{model: m})
			t.Cleanup(server.Close)
			submit, err := json.Marshal(api.tool)
			if err != nil {
				t.Fatal(err)
			}
			tools := []json.RawMessage{submit, json.RawMessage(strings.ReplaceAll(string(submit), "workflow_start", "workflow_submit_activity"))}
			for _, step := range []struct {
				results []string
				says    []string
			}{
				{nil, []string{"workflow_start", "lighthouse"}},
				{[]string{named}, []string{"workflow_submit_activity", "refund"}},
				{[]string{named, rejected}, []string{"workflow_submit_activity", "0.94"}},
				{[]string{named, rejected, text}, []string{"workflow_submit_activity", "0.94"}},
				{[]string{named, rejected, text, `{"status":"completed"}`}, []string{"The run is completed."}},
			} {
				body := compact(object{"model": "scripted", "stream": true, "tools": tools, api.items: api.of(step.results)})
				res, err := http.Post(server.URL+path, "application/json", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(res.Body)
				if err != nil || res.Body.Close() != nil || res.StatusCode != http.StatusOK {
					t.Fatal(res.Status, err)
				}
				for _, want := range step.says {
					if !strings.Contains(string(answer), want) {
						t.Errorf("after %d results the answer has no %s:\n%s", len(step.results), want, answer)
					}
				}
			}
		})
	}
}

// TestRow: a row has the date and the result of the run, the calls of the model and the attempts that failed.
func TestRow(t *testing.T) {
	t.Parallel()
	const history = `{"name":"ExecutionStarted","created_at":"2026-11-29T17:00:00Z","payload":{"workflowName":"lighthouse","actor":{"via":"mcp","name":"desk","version":"3"}}}
{"name":"ActivityFailed","created_at":"2026-11-29T17:00:01Z","payload":{"actor":{"via":"mcp","name":"desk","version":"3"}}}
{"name":"ActivityCompleted","created_at":"2026-11-29T17:00:02Z","payload":{"actor":{"via":"mcp","name":"desk","version":"3"}},"activity":{"tokens_in":90,"tokens_out":10}}
{"name":"ResumeInterrupt","created_at":"2026-11-29T17:00:03Z","payload":{"actor":{"via":"elicitation","name":"desk","version":"3"}}}
{"name":"ExecutionCompleted","created_at":"2026-11-30T17:00:04Z","payload":{"result":{}}}`
	for want, r := range map[string]row{
		"| 2026-11-30 | desk 3 | small | lighthouse | yes | 3 | 100 | 1 |":       {Model: "small"},
		"| 2026-11-30 | Desk 3.1 | small | sort a ticket | yes | 5 | 1200 | 3 |": {Model: "small", Host: "Desk 3.1", Task: "sort a ticket", Tokens: 1200, Rejected: 2},
	} {
		if line, err := r.read(strings.NewReader(history)); err != nil || line != want {
			t.Errorf("%s (%v), not %s", line, err, want)
		}
	}
	for _, invalid := range []string{"", "completed\n"} {
		if line, err := (row{Model: "small"}).read(strings.NewReader(invalid)); err == nil {
			t.Errorf("%q makes %s", invalid, line)
		}
	}
}
