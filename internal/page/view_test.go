package page

import (
	"html/template"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
)

// shown is a page over an engine in memory.
type shown struct {
	*testing.T
	*Server
	engine *graph.Runner
}

func show(t *testing.T, options ...func(*Options)) *shown {
	t.Helper()
	engine := enginetest.Closing(t, enginetest.Must(graph.New(historymem.New(), graph.Options{DefaultMode: machine.HostMediated})))
	o := Options{Engine: engine, Origin: "http://page.localhost:8123", Version: "test", Actor: history.Actor{Name: "kim"}}
	for _, change := range options {
		change(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &shown{T: t, Server: s, engine: engine}
}

func (s *shown) start(id, definition string, input map[string]any) {
	s.Helper()
	_, err := s.engine.Start(s.Context(), graph.StartRequest{
		ExecutionID: id, Definition: enginetest.Define(s, definition), Input: input, Wait: graph.Wait{Limit: graph.NoWait},
	})
	if err != nil {
		s.Fatal(err)
	}
}

// get returns the view at an address.
func (s *shown) get(path string) (body string) {
	s.Helper()
	v := s.view(path)
	if v.Status != 0 && v.Status != http.StatusOK {
		s.Fatalf("%s: status %d: %s", path, v.Status, v.Body)
	}
	if v.Raw != nil {
		return string(v.Raw.Body)
	}
	return string(v.Body)
}

func (s *shown) view(path string) view {
	s.Helper()
	v, to := s.render(httptest.NewRequestWithContext(s.Context(), http.MethodGet, path, nil))
	if to != "" {
		s.Fatalf("%s redirects to %s", path, to)
	}
	return v
}

func (s *shown) requireText(body string, texts ...string) {
	s.Helper()
	for _, text := range texts {
		if !strings.Contains(body, template.HTMLEscapeString(text)) {
			s.Errorf("%q is missing in\n%s", text, body)
		}
	}
}

// asking is a definition that asks whether to pay.
const asking = `{"document":{"schema":"s","name":"pay","version":"1.0.0"},"x-workflows-engine":{"uses":["templates"]},"state_schema":{"type":"object"},
	"nodes":[{"id":"begin","type":"start"},
		{"id":"ask","type":"interrupt","show":"{invoice: .invoice, lines: .lines}","config":{"prompt":"Pay the invoice?",
			"resume_schema":{"type":"object","properties":{"approved":{"type":"boolean"},"note":{"type":"string"}},"required":["approved"],"additionalProperties":false}}},
		{"id":"end","type":"end"}],
	"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"ask"},{"source":"ask","target":"end"}]}`

func TestQuestion(t *testing.T) {
	t.Parallel()
	s := show(t)
	s.start("r1", asking, map[string]any{"lines": []any{map[string]any{"item": "pen", "price": 2.0}, map[string]any{"item": "ink", "price": 7.0}}, "invoice": "No 17\nof May"})
	run := s.get("/runs/r1")
	s.requireText(run, "Pay the invoice?", "needs an answer")
	body := s.get(fragment.QuestionPath("r1", "ask#1"))
	s.requireText(body, "Pay the invoice?", "No 17\nof May", "pen", "Approve", "Deny")
	if strings.Index(body, "<dt>invoice") > strings.Index(body, "<dt>lines") {
		t.Error("the fields are not in the order of the definition")
	}
	if !strings.Contains(body, "<th scope=\"col\">item</th>") {
		t.Error("equal objects are not a table")
	}
	if _, err := s.engine.Resume(graph.WithActor(t.Context(), history.Actor{Via: "page", Name: "kim"}), graph.ResumeRequest{
		ExecutionID: "r1", InterruptID: "r1:ask#1", Payload: map[string]any{"approved": true, "note": "fine"},
	}); err != nil {
		t.Fatal(err)
	}
	body = s.get(fragment.QuestionPath("r1", "ask#1"))
	s.requireText(body, "Pay the invoice?", "Answered by kim (page)", "fine")
	if strings.Contains(body, "<form") {
		t.Error("an answered question has a form")
	}
}

// TestEveryIdHasPages: whatever an id holds, each page of its run is found at the address that other pages link.
func TestEveryIdHasPages(t *testing.T) {
	t.Parallel()
	s := show(t)
	for _, id := range []string{"a/b", "a:b", "a#b", "a?b=c&d", ".", "..", "...", "a%2Fb", "ä ö", "//", `"><script>`} {
		s.start(id, asking, nil)
		for _, path := range []string{
			fragment.RunPath(id), fragment.HistoryPath(id, 1), fragment.HistoryPath(id, 2), fragment.StatePath(id, 5), fragment.QuestionPath(id, "ask#1"),
			fragment.VisitPath(id, "ask", 1), fragment.GraphPath(id), fragment.ValuePath(id, "state"), fragment.RecordPath(id, 1, "record"),
		} {
			s.get(path)
		}
	}
	body := s.get("/runs")
	for _, id := range []string{"a/b", ".", "..", `"><script>`} {
		if !strings.Contains(body, template.HTMLEscapeString(fragment.RunPath(id))) {
			t.Errorf("%q is not linked in %s", id, body)
		}
	}
}

// BenchmarkRun renders the page of a run with 10,000 records.
func BenchmarkRun(b *testing.B) {
	engine := enginetest.Closing(b, enginetest.Must(graph.New(historymem.New(), graph.Options{})))
	s := enginetest.Must(New(Options{Engine: engine, Origin: "http://page.localhost:8123"}))
	d := enginetest.Define(b, `{"document":{"schema":"s","name":"count","version":"1.0.0"},"state_schema":{"type":"object"},
		"nodes":[{"id":"begin","type":"start"},{"id":"add","type":"set_state","config":{"assignments":{"n":"$.n + 1"}}},
			{"id":"again","type":"switch","config":{"cases":[{"when":"$.n < 1650","target":"add"}],"default":"end"}},{"id":"end","type":"end"}],
		"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"add"},{"source":"add","target":"again"}]}`)
	run, err := engine.Start(b.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Input: map[string]any{"n": 0.0}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if v, _ := s.render(httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/runs/r", nil)); v.Status != 0 {
			b.Fatal(v.Body)
		}
	}
	b.ReportMetric(float64(run.Seq), "records")
}
