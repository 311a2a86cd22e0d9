package mcpserver_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

// clerk records a step and asks once; with an expiry nobody need answer.
type clerk struct{ expires time.Duration }

func (c clerk) Execute(context.Context, activities.Request) (activities.Result, error) {
	return activities.Result{}, activities.Fail("NOT_JOURNALED", "there are journals only")
}
func (c clerk) Capabilities(activities.Node) activities.Capabilities {
	return activities.Capabilities{Work: c.work}
}
func (c clerk) work(ctx context.Context, _ activities.Request, j activities.Journal) (activities.End, error) {
	steps, err := j.Steps(ctx)
	if err != nil || len(steps) > 0 {
		return activities.End{Result: &activities.Result{Output: object{}}}, err
	}
	q := &activities.Question{Key: "q1", Prompt: "Go on?", Body: object{"pages": 2}, Schema: object{"type": "object", "required": []any{"ok"}}}
	if c.expires > 0 {
		q.Expires, q.Otherwise = time.Now().Add(c.expires), object{"ok": true}
	}
	step := activities.Step{Key: "/1", Kind: "fetched", Body: object{"a": strings.Repeat("long ", 100)}, Totals: object{"pages": 1}}
	return activities.End{Steps: []activities.Step{step}, Question: q}, nil
}

// TestAJournalIsShown: the question of an executor with what is shown beside it, how many steps there are and what they come to, and each in
// the text of a history.
func TestAJournalIsShown(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{Activities: activities.Composite{Step: clerk{}}})
	h.ok("workflow_start", object{"execution_id": "r", "definition": walk(work)})
	status := h.raw("workflow_status", object{"execution_id": "r"})
	want := `Waits: interrupt at node "work" (step), 2 steps of attempt 1 recorded: Go on? show:` + "\n  pages: 2\n  " + `resume_schema: {"required":["ok"],"type":"object"}`
	if !strings.Contains(status.text, want) {
		t.Errorf("no %s in\n%s", want, status.text)
	}
	pending := status.content["pending"].([]any)[0].(object)
	got := mustJSON(t, object{"totals": pending["totals"], "steps": pending["steps"], "show": pending["show"]})
	if want := `{"show":{"pages":2},"steps":2,"totals":{"pages":1}}`; string(got) != want {
		t.Errorf("pending: %s", got)
	}
	if answer := h.ok("workflow_resume", object{"execution_id": "r", "resume_payload": object{"ok": true}}); answer["status"] != "completed" {
		t.Errorf("%v", answer)
	}
	page := h.raw("workflow_history", object{"execution_id": "r"})
	for _, want := range []string{
		`ActivityRequested "work" step 1 "fetched" "/1" \{`, `InterruptRaised "work" step 2 "question" "q1" \{.*"pages":2`,
		`InterruptResumed "work" step 3 "answer" "q1" \{`, `ActivityRequested "work" step 4 "woken" "w4" \{`,
	} {
		if !regexp.MustCompile(want).MatchString(page.text) {
			t.Errorf("no %s in\n%s", want, page.text)
		}
	}
}

// TestAnAnswerThatNobodyGave may be kept by a fork where only persons answer: it is the executor's own. Given by a person it may not.
func TestAnAnswerThatNobodyGave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{Activities: activities.Composite{Step: clerk{time.Minute}}, Work: graph.WorkAll})))
		h := connectHost(t, runner, mcpserver.Options{Definitions: store, Elicit: elicit.Required})
		h.runner, h.store = runner, store
		for _, id := range []string{"waited", "answered"} {
			h.ok("workflow_start", object{"execution_id": id, "definition": walk(work)})
		}
		if _, err := runner.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "answered", Payload: object{"ok": true}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if answer := h.ok("workflow_status", object{"execution_id": "waited"}); answer["phase"] != "completed" {
			t.Fatalf("%v", answer)
		}
		last := func(id string) object { return object{"execution_id": id, "seq": len(records(t, h, id)) - 1} }
		h.ok("workflow_fork", last("waited"))
		if r := h.refused("VALIDATION_ERROR", "workflow_fork", last("answered")); r.details()["engineCode"] != "PERSON_REQUIRED" {
			t.Errorf("%s", r.text)
		}
	})
}
