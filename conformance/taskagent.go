package conformance

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// taskAgent is an agent that speaks the HTTP task form: a task is working at its first poll and completed at its second, with the
// output of the mock delegate. It answers HTTP requests without a network.
type taskAgent struct {
	mu    sync.Mutex
	tasks []*agentTask
}

type agentTask struct {
	output any
	polls  int
}

func newTaskAgent() *taskAgent { return &taskAgent{} }

// client returns a client that sends all requests to the agent.
func (a *taskAgent) client() *http.Client { return &http.Client{Transport: a} }

// RoundTrip implements http.RoundTripper.
func (a *taskAgent) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		defer r.Body.Close()
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	status, answer := a.serve(r, body)
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(jsonvalue.Canonical(answer))),
	}, nil
}

func (a *taskAgent) serve(r *http.Request, body []byte) (int, map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		return http.StatusUnauthorized, map[string]any{"error": "no key"}
	}
	if r.Method == http.MethodPost && r.URL.Path == "/tasks" {
		return a.submit(r, body)
	}
	var n int
	if _, err := fmt.Sscanf(r.URL.Path, "/tasks/task-%d", &n); err != nil || r.Method != http.MethodGet || n < 1 || n > len(a.tasks) {
		return http.StatusNotFound, map[string]any{"error": "no such task"}
	}
	task := a.tasks[n-1]
	answer := map[string]any{"id": fmt.Sprintf("task-%d", n), "status": "working"}
	if task.polls++; task.polls > 1 {
		answer["status"], answer["output"] = "completed", task.output
	}
	return http.StatusOK, answer
}

func (a *taskAgent) submit(r *http.Request, body []byte) (int, map[string]any) {
	value, err := jsonvalue.Decode(body)
	order, ok := value.(map[string]any)
	if err != nil || !ok {
		return http.StatusBadRequest, map[string]any{"error": "not a JSON object"}
	}
	input, _ := order["input"].(map[string]any)
	correlation, _ := order["correlation_id"].(string)
	result, err := delegate.Mock{}.Execute(r.Context(), activities.Request{Protocol: "a2a", Input: input, CorrelationID: correlation})
	if err != nil {
		return http.StatusInternalServerError, map[string]any{"error": err.Error()}
	}
	a.tasks = append(a.tasks, &agentTask{output: result.Output})
	return http.StatusAccepted, map[string]any{"id": fmt.Sprintf("task-%d", len(a.tasks)), "status": "submitted"}
}
