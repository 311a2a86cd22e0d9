package mcpserver_test

import (
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

// TestAQuestionIsShownOnce: of many calls that find the same question open one shows the form, and the others wait for its answer.
func TestAQuestionIsShownOnce(t *testing.T) {
	t.Parallel()
	for _, content := range []*mcp.ElicitResult{accepts(object{"approve": true}), declines} {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, graph.Options{}, mcpserver.Options{})
			enginetest.Must(o.runner.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: enginetest.Define(t, string(enginetest.Must(json.Marshal(walk(approval)))))}))
			status := &mcp.CallToolParams{Name: "workflow_status", Arguments: object{"execution_id": "r", "wait_ms": 60_000}}
			resume := &mcp.CallToolParams{Name: "workflow_resume", Arguments: object{"execution_id": "r"}}
			var all sync.WaitGroup
			var mu sync.Mutex
			var forms, others []*mcp.CallToolResult
			var shown *mcp.CallToolParams
			session := o.byHand()
			for _, params := range []*mcp.CallToolParams{status, resume, status, status, resume, status} {
				call := new(*params) // the client writes into it
				all.Go(func() {
					res := enginetest.Must(session.CallTool(t.Context(), call))
					mu.Lock()
					defer mu.Unlock()
					if res.NeedsInput() {
						forms, shown = append(forms, res), call
					} else {
						others = append(others, res)
					}
				})
			}
			synctest.Wait()
			mu.Lock()
			if len(forms) != 1 || len(others) != 0 {
				t.Fatalf("%d forms, %d answers before the person's", len(forms), len(others))
			}
			mu.Unlock()
			enginetest.Must(session.CallTool(t.Context(), answered(shown, forms[0].RequestState, content)))
			all.Wait()
			want := "completed"
			if content == declines {
				want = "interrupted"
			}
			for i, res := range others {
				content := res.StructuredContent.(object)
				if content["status"] != want && content["phase"] != want {
					t.Errorf("call %d answers %v", i, content)
				}
			}
			if len(forms) != 1 || len(others) != 5 {
				t.Errorf("%d forms, %d answers", len(forms), len(others))
			}
		})
	}
}

// TestALostFormIsShownAgain: a form of which nothing is heard keeps nobody from answering for long.
func TestALostFormIsShownAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{})
		session := o.byHand()
		start := &mcp.CallToolParams{Name: "workflow_start", Arguments: object{"execution_id": "r", "definition": walk(approval)}}
		status := &mcp.CallToolParams{Name: "workflow_status", Arguments: object{"execution_id": "r", "wait_ms": 1000}}
		resume := &mcp.CallToolParams{Name: "workflow_resume", Arguments: object{"execution_id": "r", "wait_ms": 1000}}
		asks := func(call *mcp.CallToolParams) bool {
			return enginetest.Must(session.CallTool(t.Context(), call)).NeedsInput()
		}
		if !asks(start) || asks(status) || asks(resume) {
			t.Error("while the form is out")
		}
		time.Sleep(elicit.PatienceOfAsked)
		if asks(status) || !asks(resume) || asks(resume) {
			t.Error("after a while")
		}
		time.Sleep(elicit.Patience)
		if !asks(status) {
			t.Error("after a long while")
		}
	})
}

// TestASecondAnswerIsSaid: whoever answers a form of a question that was answered before hears that it was not taken, unless it is the
// same, in every revision.
func TestASecondAnswerIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		second *mcp.ElicitResult
		said   bool
	}{
		"the same": {accepts(object{"approve": true}), false}, "another": {accepts(object{"approve": false}), true},
		"declined": {declines, true}, "closed": {&mcp.ElicitResult{Action: "cancel"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, graph.Options{}, mcpserver.Options{})
				session := o.byHand()
				start := &mcp.CallToolParams{Name: "workflow_start", Arguments: object{"execution_id": "r", "definition": walk(approval, work)}}
				asked := enginetest.Must(session.CallTool(t.Context(), start))
				enginetest.Must(session.CallTool(t.Context(), answered(start, asked.RequestState, accepts(object{"approve": true}))))
				for _, at := range []*mcp.ClientSession{session, o.byHand()} { // one server knows the first answer, the other finds it
					res := enginetest.Must(at.CallTool(t.Context(), answered(start, asked.RequestState, c.second)))
					said := contains(res.Content[0].(*mcp.TextContent).Text, "The person's answer was rejected")
					if said != c.said || statusOf(t, res) != "awaiting_activity" {
						t.Errorf("said %t: %+v", said, res.StructuredContent)
					}
				}
			})
		})
	}
}
