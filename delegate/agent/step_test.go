package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/stepcommand"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const programVariable = "STEP_PROGRAM"

// TestMain makes the test binary a step program where a test has started it as one.
func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		program()
		return
	}
	os.Exit(m.Run())
}

// program adds the numbers that it is given, and says under which key.
func program() {
	var in struct {
		Key   string `json:"idempotency_key"`
		Run   string `json:"execution_id"`
		Node  string `json:"node_id"`
		State struct{ Items []float64 }
	}
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		os.Exit(1)
	}
	sum := 0.0
	for _, n := range in.State.Items {
		sum += n
	}
	switch {
	case len(in.State.Items) == 0:
		fmt.Println(`{"error":"nothing to add","code":"NO_ITEMS","retryable":false}`)
	case sum > 1000:
		os.Exit(7)
	default:
		_ = json.NewEncoder(os.Stdout).Encode(object{"output": object{"total": sum, "key": in.Key, "run": in.Run, "node": in.Node}})
	}
}

func TestStepProgram(t *testing.T) {
	t.Parallel()
	commands := enginetest.Must(stepcommand.New(stepcommand.Config{Commands: map[string]stepcommand.Command{
		"urn:example:total": {Command: enginetest.Must(os.Executable()), Env: map[string]string{programVariable: "1"}, Timeout: time.Minute},
	}}))
	t.Cleanup(func() { _ = commands.Close() })
	registry := activities.NewStepRegistry()
	if err := commands.Register(registry); err != nil {
		t.Fatal(err)
	}
	steps := activities.Composite{Step: registry}
	schema := object{"type": "object", "properties": object{"items": object{"type": "array"}}}
	set := agent.NewStepTool(steps, "urn:example:total", "total", "Adds prices.", schema, agent.WithOnCrash(agent.Repeat), agent.WithGate(agent.Ask), agent.WithParallel(true))
	listed := enginetest.Must(set.Tools(t.Context()))
	if got := listed[0]; len(listed) != 1 || got.Name != "total" || got.Source != "step:urn:example:total" || got.OnCrash != agent.Repeat || got.Gate != agent.Ask || !got.Parallel || !jsonvalue.Equal(got.Parameters, schema) {
		t.Errorf("%+v", listed)
	}
	call := func(items ...any) (any, error) {
		return set.Call(t.Context(), agent.Call{
			Name: "total", Arguments: object{"items": items}, Key: "r:n#1.1/t1.c1", Heartbeat: func(object) {}, Request: activities.Request{ExecutionID: "r", NodeID: "n"},
		})
	}
	got, err := call(1.5, 2.5)
	if want := (object{"total": 4.0, "key": "r:n#1.1/t1.c1", "run": "r", "node": "n"}); err != nil || !jsonvalue.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for code, items := range map[string][]any{"NO_ITEMS": {}, "STEP_COMMAND_FAILED": {2000.0}} {
		_, err := call(items...)
		if failure, ok := errors.AsType[*activities.Failure](err); !ok || failure.Code != code {
			t.Errorf("%v: %v, want %s", items, err, code)
		}
	}
	unknown := agent.NewStepTool(steps, "urn:example:other", "other", "d", nil)
	_, err = unknown.Tools(t.Context())
	if failure, ok := errors.AsType[*activities.Failure](err); !ok || failure.Code != "HANDLER_NOT_FOUND" {
		t.Errorf("%v", err)
	}
}

// A handler of Go is a tool too, and its output may be any value.
func TestStepHandler(t *testing.T) {
	t.Parallel()
	registry := activities.NewStepRegistry()
	if err := registry.RegisterStatic(object{"urn:fixed": object{"a": 1.0}, "urn:fails": object{"ok": false, "error": "no", "code": "NOT_TODAY"}}); err != nil {
		t.Fatal(err)
	}
	fixed := agent.NewStepTool(registry, "urn:fixed", "fixed", "d", nil)
	if listed := enginetest.Must(fixed.Tools(t.Context())); listed[0].Parameters["type"] != "object" || listed[0].OnCrash != "" || listed[0].Parallel {
		t.Errorf("%+v", listed)
	}
	if got, err := fixed.Call(t.Context(), agent.Call{Name: "fixed"}); err != nil || !jsonvalue.Equal(got, object{"a": 1.0}) {
		t.Errorf("%v, %v", got, err)
	}
	_, err := agent.NewStepTool(registry, "urn:fails", "fails", "d", nil).Call(t.Context(), agent.Call{Name: "fails"})
	if failure, ok := errors.AsType[*activities.Failure](err); !ok || failure.Code != "NOT_TODAY" {
		t.Errorf("%v", err)
	}
}
