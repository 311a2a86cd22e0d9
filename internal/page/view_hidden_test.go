package page

import (
	"net/http"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
)

// TestReadOnlyPagesHaveNoForms: a page that only reads offers nothing that changes a run.
func TestReadOnlyPagesHaveNoForms(t *testing.T) {
	t.Parallel()
	s := show(t, func(o *Options) { o.ReadOnly = true })
	s.start("r", asking, map[string]any{"invoice": "17"})
	for _, path := range []string{fragment.RunPath("r"), fragment.QuestionPath("r", "ask#1"), fragment.WorkflowPath("pay"), "/system"} {
		if body := s.get(path); strings.Contains(body, `method="post"`) {
			t.Errorf("%s has a form: %s", path, body)
		}
	}
	s.requireText(s.get(fragment.QuestionPath("r", "ask#1")), "Pay the invoice?", "17")
}

// TestSecretsAreHidden: no page shows a value that the redaction hides, be it by the name of its field or as a known text.
func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	s := show(t, func(o *Options) {
		o.Redaction = history.DefaultRedaction().WithMask(func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") })
	})
	s.start("r", asking, map[string]any{"invoice": map[string]any{"password": "s3cr3t", "note": "it is hunter2"}, "api_key": "k3y"})
	for _, path := range []string{
		"/", "/runs", fragment.RunPath("r"), fragment.QuestionPath("r", "ask#1"), fragment.HistoryPath("r", 1), fragment.StatePath("r", 8), fragment.VisitPath("r", "ask", 1),
		fragment.ValuePath("r", "state"), fragment.RecordPath("r", 5, "record"),
	} {
		for _, secret := range []string{"s3cr3t", "hunter2", "k3y"} {
			if body := s.get(path); strings.Contains(body, secret) {
				t.Errorf("%s shows %q: %s", path, secret, body)
			}
		}
	}
}

// TestUnknownRuns: the page of an unknown id links those that are like it.
func TestUnknownRuns(t *testing.T) {
	t.Parallel()
	s := show(t)
	s.start("order-17", asking, nil)
	v := s.view("/runs/order-71")
	if v.Status != http.StatusNotFound || !strings.Contains(string(v.Body), `href="/runs/order-17"`) {
		t.Errorf("%d %s", v.Status, v.Body)
	}
}

// TestLivePages: a page that is rendered again shows what was recorded meanwhile, also of another run with the id.
func TestLivePages(t *testing.T) {
	t.Parallel()
	s := show(t)
	s.start("r", asking, nil)
	s.requireText(s.get("/runs/r"), "needs an answer")
	if _, err := s.engine.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: "r:ask#1", Payload: map[string]any{"approved": true}}); err != nil {
		t.Fatal(err)
	}
	body := s.get("/runs/r")
	s.requireText(body, "completed")
	if strings.Contains(body, "needs an answer") || strings.Count(body, `class="visit done"`) != 3 {
		t.Errorf("the visits are not those of the run: %s", body)
	}
}
