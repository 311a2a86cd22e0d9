package temporal

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
	"github.com/workflows-engine/workflows-engine/internal/httpapi"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
	"github.com/workflows-engine/workflows-engine/internal/page"
)

const (
	pageToken = "0123456789abcdef"
	pageHost  = "127.0.0.1:8123"
)

// ask sends a request to a handler and returns the status and the body.
func ask(t *testing.T, h http.Handler, method, path string, header http.Header, body string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Host, r.Header = pageHost, header.Clone()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), w.Body.String()
}

// TestThePageShowsRunsOnTemporal: every view answers, and leaves out what the engine lacks.
func TestThePageShowsRunsOnTemporal(t *testing.T) {
	t.Parallel()
	e, _ := newTestEngine(t, Options{Activities: steps(charged)})
	asked := start(t, e, graph.StartRequest{ExecutionID: "asks", Definition: approval(t), Title: "The one that asks"})
	start(t, e, graph.StartRequest{ExecutionID: "done", Definition: approval(t)})
	done, err := e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "done", Payload: map[string]any{"approve": true}})
	if err != nil || done.Status != machine.Completed {
		t.Fatalf("%+v %v", done, err)
	}
	p, err := page.New(page.Options{Engine: e, Redaction: history.DefaultRedaction(), Access: &httpguard.Access{Tokens: httpguard.OneToken(pageToken, "kim")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Origin": {"http://" + pageHost}}
	in, text := ask(t, p, "POST", "/in", form, url.Values{"t": {pageToken}, "to": {"/runs"}}.Encode())
	cookie, _, _ := strings.Cut(in.Header.Get("Set-Cookie"), ";")
	if in.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", in.StatusCode, text)
	}
	for path, want := range map[string]string{
		"/": "The one that asks", "/runs": "asks", "/runs?phase=completed": "done", fragment.RunPath("asks"): "Publish?", fragment.RunPath("done"): "completed",
		fragment.QuestionPath("asks", "ask#1"): "Publish?", fragment.RunPath("done") + "/history": "CompleteNode", fragment.RunPath("done") + "/visits/work/1": "work",
		fragment.RunPath("done") + "/graph.svg": "<svg", "/workflows": "approval", fragment.WorkflowPath(asked.DefinitionHash): "approval", "/system": "System",
	} {
		res, text := ask(t, p, "GET", path, http.Header{"Cookie": {cookie}}, "")
		if res.StatusCode != http.StatusOK || !strings.Contains(text, want) || strings.Contains(text, "UNSUPPORTED") {
			t.Errorf("%s: %d, no %q in\n%.2000s", path, res.StatusCode, want, text)
		}
	}
	_, text = ask(t, p, "GET", fragment.RunPath("done"), http.Header{"Cookie": {cookie}}, "")
	if strings.Contains(text, "/fork") {
		t.Error("the page offers forks")
	}
}

// TestTheAPIServesRunsOnTemporal: operations that the engine lacks are answered with 501.
func TestTheAPIServesRunsOnTemporal(t *testing.T) {
	t.Parallel()
	e, _ := newTestEngine(t, Options{Activities: steps(charged)})
	start(t, e, graph.StartRequest{ExecutionID: "asks", Definition: approval(t)})
	h := httpapi.New(httpapi.Options{Engine: e, Redaction: history.DefaultRedaction(), Access: httpguard.Access{Tokens: httpguard.OneToken(pageToken, "kim")}})
	header := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + pageToken}}
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/v1/executions", "", 200, `"asks"`}, {"GET", "/v1/executions/asks", "", 200, `"interrupted"`}, {"GET", "/v1/questions", "", 200, "Publish?"},
		{"GET", "/v1/executions/asks/events", "", 200, "InterruptRaised"}, {"GET", "/v1/executions/asks/graph.svg", "", 200, "<svg"},
		{"GET", "/v1/workflows", "", 200, `"approval"`}, {"POST", "/v1/executions", `{"definition_ref":"approval","execution_id":"more"}`, 201, `"more"`},
		{"POST", "/v1/executions/asks:resume", `{"resume_payload":{"approve":true}}`, 200, `"completed"`},
		{"POST", "/v1/executions/asks:fork", `{"seq":2}`, 501, "UNSUPPORTED_BY_BACKEND"}, {"GET", "/v1/events", "", 501, "UNSUPPORTED_BY_BACKEND"},
		{"GET", "/v1/executions?updated_after=2026-01-01T00:00:00Z", "", 501, "UNSUPPORTED_BY_BACKEND"}, {"GET", "/healthz", "", 200, ""},
	} {
		res, text := ask(t, h, c.method, c.path, header, c.body)
		if res.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %d, want %d and %q\n%.1000s", c.method, c.path, res.StatusCode, c.status, c.want, text)
		}
	}
}
