package page

import (
	"fmt"
	"html/template"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
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

// TestAQuestionAndItsVisit link each other, while the question is open.
func TestAQuestionAndItsVisit(t *testing.T) {
	t.Parallel()
	s := show(t)
	s.start("r", asking, nil)
	question, visit := fragment.QuestionPath("r", "ask#1"), fragment.VisitPath("r", "ask", 1)
	link := func(at, html string) {
		t.Helper()
		if body := s.get(at); !strings.Contains(body, html) {
			t.Errorf("no %s in %s", html, body)
		}
	}
	link(question, `<a href="`+visit+`">ask</a>`)
	link(visit, `href="`+question+`">Pay the invoice?</a>`)
	if _, err := s.engine.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: map[string]any{"approved": true}}); err != nil {
		t.Fatal(err)
	}
	link(question, `<a href="`+visit+`">ask</a>`)
	if body := s.get(visit); strings.Contains(body, "Waits for an answer") {
		t.Errorf("the question is open: %s", body)
	}
}

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
	s.requireText(body, "Pay the invoice?", "Answered by kim (page)", "fine", "No 17\nof May", "pen") // what was approved, too
	if strings.Index(body, "<dt>invoice") > strings.Index(body, "<dt>lines") || !strings.Contains(body, "<dt>invoice") {
		t.Error("the fields of the answered question are not in the order of the definition")
	}
	if strings.Contains(body, "<form") {
		t.Error("an answered question has a form")
	}
}

// TestAnAnsweredQuestionShowsItsState: it is the state of the question, without the answer and without later changes. Where the author
// shows no value, the person saw the state.
func TestAnAnsweredQuestionShowsItsState(t *testing.T) {
	t.Parallel()
	const definition = `{"document":{"schema":"s","name":"plain","version":"1"},"state_schema":{"type":"object"},
	"nodes":[{"id":"begin","type":"start"},
		{"id":"check","type":"set_state","config":{"assignments":{"stock":{"literal":"NO_STOCK"}}}},
		{"id":"ask","type":"interrupt","config":{"prompt":"Go on?","resume_schema":{"type":"object","properties":{"amount":{"type":"integer"}}}}},
		{"id":"later","type":"set_state","config":{"assignments":{"afterwards":{"literal":true}}}},
		{"id":"end","type":"end"}],
	"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"check"},{"source":"check","target":"ask"},{"source":"ask","target":"later"},{"source":"later","target":"end"}]}`
	s := show(t)
	s.start("r1", definition, map[string]any{"order": "A17"})
	path := fragment.QuestionPath("r1", "ask#1")
	shown := func(body string) string {
		_, part, _ := strings.Cut(body, `<section aria-label="What the question is about">`)
		part, _, _ = strings.Cut(part, "</section>")
		return part
	}
	open := shown(s.get(path))
	if _, err := s.engine.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r1", InterruptID: "r1:ask#1", Payload: map[string]any{"amount": 7.0}}); err != nil {
		t.Fatal(err)
	}
	if answered := shown(s.get(path)); !strings.Contains(open, "A17") || !strings.Contains(open, "NO_STOCK") || len(answered) != len(open) || !strings.Contains(answered, "NO_STOCK") {
		t.Errorf("asked with\n%s\nanswered with\n%s", open, answered)
	}
}

// TestEveryIdHasPages: whatever an id holds, each page of its run is found at the address that other pages link.
func TestEveryIdHasPages(t *testing.T) {
	t.Parallel()
	s := show(t)
	for _, id := range []string{"a/b", "a:b", "a#b", "a?b=c&d", ".", "..", "...", "a%2Fb", "ä ö", "/", "//", `"><script>`} {
		s.start(id, asking, nil)
		for _, path := range []string{
			fragment.RunPath(id), fragment.HistoryPath(id, 1), fragment.HistoryPath(id, 2), fragment.StatePath(id, 5), fragment.QuestionPath(id, "ask#1"),
			fragment.VisitPath(id, "ask", 1), fragment.GraphPath(id), fragment.ValuePath(id, "state"), fragment.RecordPath(id, 1, "record"),
		} {
			s.get(path)
		}
	}
	body := s.get("/runs")
	for _, id := range []string{"a/b", ".", "..", "/", `"><script>`} {
		if !strings.Contains(body, template.HTMLEscapeString(fragment.RunPath(id))) {
			t.Errorf("%q is not linked in %s", id, body)
		}
	}
}

// hostile are texts that would be markup, URLs or controls if they were not escaped. None holds a hidden letter or a digit of ours.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `javascript:alert(1)`, `</textarea><script>x</script>`,
	`</title></style></svg><b>`, "ev\x1b[2J\u009b2J\u202eil\x07\r", `{{.}}`, `<!--`, `]]>`, `&lt;b&gt;`, `https://evil.example/`, `data:text/html,<b>x`,
}

// TestHostileTexts: no text of a run becomes a tag, an attribute or a URL on any page, and none acts on the reader's screen.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	ended := `{"document":{"schema":"s","name":NAME,"version":"1.0.0","description":EVIL},"state_schema":{"type":"object"},
		"nodes":[{"id":"begin","type":"start"},{"id":EVIL,"type":"step","config":{"handler":EVIL,"text":EVIL}},{"id":"end","type":"end"}],
		"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":EVIL},{"source":EVIL,"target":"end"}]}`
	asks := `{"document":{"schema":"s","name":NAME,"version":"1.0.0"},"state_schema":{"type":"object"},
		"nodes":[{"id":"begin","type":"start"},{"id":EVIL,"type":"interrupt","config":{"prompt":EVIL,"resume_schema":{"type":"object","title":EVIL,
			"properties":{"text":{"type":"string","title":EVIL,"description":EVIL,"default":EVIL},"one":{"enum":[EVIL,"b"]}},"required":["text"]}}},{"id":"end","type":"end"}],
		"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":EVIL},{"source":EVIL,"target":"end"}]}`
	for i, evil := range hostile {
		s := show(t)
		quoted := string(jsonvalue.Canonical(evil))
		define := func(text, name string) *definition.Document {
			return enginetest.Define(t, strings.NewReplacer("EVIL", quoted, "NAME", string(jsonvalue.Canonical(name))).Replace(text))
		}
		id := evil
		if strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' }) {
			id = "plain"
		}
		input := map[string]any{evil: evil, "list": []any{map[string]any{evil: evil}, map[string]any{evil: evil}}}
		labels := map[string]string{"label": "v"}
		if id == evil {
			labels = map[string]string{"label": evil}
		}
		for run, text := range map[string]string{id: ended, id + "?": asks} {
			if _, err := s.engine.Start(t.Context(), graph.StartRequest{
				ExecutionID: run, Definition: define(text, id+run[len(id):]), Input: input, Title: id, Labels: labels, Wait: graph.Wait{Limit: graph.NoWait},
			}); err != nil {
				t.Fatalf("%q: %v", evil, err)
			}
		}
		if _, err := s.engine.SubmitActivity(graph.WithActor(t.Context(), history.Actor{Via: evil, Name: evil}), graph.SubmitRequest{
			ExecutionID: id, NodeID: evil, Error: evil, Code: "CODE",
		}); err != nil {
			t.Fatal(err)
		}
		pages := []string{
			"/", "/runs", "/workflows", "/system", "/runs?" + url.Values{"definition": {evil}, "label": {evil}, "below": {evil}}.Encode(),
			fragment.WorkflowPath(id), fragment.RunPath(id), fragment.RunPath(id + "?"), fragment.HistoryPath(id, 1), fragment.HistoryPath(id+"?", 1),
			fragment.StatePath(id, 6), fragment.VisitPath(id, evil, 1), fragment.VisitPath(id+"?", evil, 1), fragment.QuestionPath(id+"?", evil+"#1"),
		}
		answered := fragment.QuestionPath(id+"?", evil+"#1")
		for _, path := range pages {
			requireHarmless(t, path, s.get(path), i)
		}
		for _, path := range []string{fragment.RunPath(evil + "!"), fragment.VisitPath(id, evil, 9), fragment.WorkflowPath(evil + "!")} {
			requireHarmless(t, path, string(s.view(path).Body), i)
		}
		if _, err := s.engine.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id + "?", InterruptID: id + "?:" + evil + "#1", Payload: map[string]any{"text": evil}}); err != nil {
			t.Fatal(err)
		}
		requireHarmless(t, answered, s.get(answered), i)
	}
}

// ownTags are the tags that pages may have.
var (
	ownTags = strings.Fields(`a article button circle code datalist dd defs del details div dl dt fieldset form g h1 h2 h3 header input ins label legend li
		line main marker nav ol option p path polygon polyline pre rect section select span strong summary svg table tbody td text textarea th thead time title tr tspan ul`)
	tag       = regexp.MustCompile(`<(/?)([a-zA-Z!][a-zA-Z0-9-]*)((?:[^>"']|"[^"]*"|'[^']*')*)>`)
	attribute = regexp.MustCompile(`\s+([a-zA-Z:-]+)(?:="([^"]*)")?`)
)

func requireHarmless(t *testing.T, path, body string, i int) {
	t.Helper()
	if at := strings.IndexFunc(body, func(r rune) bool {
		return r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e)
	}); at >= 0 {
		t.Errorf("%s has a control character: %q", path, body[max(0, at-40):at+10])
	}
	rest := tag.ReplaceAllString(body, "")
	if strings.ContainsAny(rest, "<") {
		t.Errorf("%s: text %d opens a tag: %.300q", path, i, rest[strings.IndexByte(rest, '<'):])
	}
	for _, m := range tag.FindAllStringSubmatch(body, -1) {
		if name := m[2]; !slices.Contains(ownTags, name) {
			t.Errorf("%s: text %d makes the tag %q", path, i, m[0])
		}
		left := attribute.ReplaceAllString(m[3], "")
		if strings.Trim(left, "/ \n") != "" {
			t.Errorf("%s: text %d leaves %q in %q", path, i, left, m[0])
		}
		for _, a := range attribute.FindAllStringSubmatch(m[3], -1) {
			switch name := strings.ToLower(a[1]); {
			case strings.HasPrefix(name, "on"), name == "src", name == "style" || name == "srcdoc":
				t.Errorf("%s: text %d makes the attribute %q", path, i, a[0])
			case name == "href" || name == "action":
				if !strings.HasPrefix(a[2], "/") && !strings.HasPrefix(a[2], "#") || strings.HasPrefix(a[2], "//") {
					t.Errorf("%s: text %d makes the URL %q", path, i, a[2])
				}
			}
		}
	}
}

// counting counts to a number in a loop; a round has six records.
const counting = `{"document":{"schema":"s","name":"count","version":"1.0.0"},"state_schema":{"type":"object"},
	"nodes":[{"id":"begin","type":"start"},{"id":"add","type":"set_state","config":{"assignments":{"n":{"jq":".n + 1"}}}},
		{"id":"again","type":"switch","config":{"cases":[{"when":".n < 1650","target":"add"}],"default":"end"}},{"id":"end","type":"end"}],
	"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"add"},{"source":"add","target":"again"}]}`

// BenchmarkRun renders pages of a run with 10,000 records.
func BenchmarkRun(b *testing.B) {
	engine := enginetest.Closing(b, enginetest.Must(graph.New(historymem.New(), graph.Options{})))
	s := enginetest.Must(New(Options{Engine: engine, Origin: "http://page.localhost:8123"}))
	run, err := engine.Start(b.Context(), graph.StartRequest{ExecutionID: "r", Definition: enginetest.Define(b, counting), Input: map[string]any{"n": 0.0}})
	if err != nil {
		b.Fatal(err)
	}
	for name, path := range map[string]string{"page": "/runs/r", "live": "/runs/r?", "history": "/runs/r/history?from=5000", "visit": "/runs/r/visits/add/800"} {
		b.Run(name, func(b *testing.B) {
			size := 0
			for b.Loop() {
				if name != "live" {
					s.folds.list = nil
				}
				v, _ := s.render(httptest.NewRequestWithContext(b.Context(), http.MethodGet, path, nil))
				if v.Status != 0 {
					b.Fatal(v.Body)
				}
				size = len(v.Body)
			}
			b.ReportMetric(float64(run.Seq), "records")
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

// TestAVisitIsReadFromItsRecords: the page of a visit has the state before it, the request and the outcome of each attempt, and the changes,
// also while the run continues.
func TestAVisitIsReadFromItsRecords(t *testing.T) {
	t.Parallel()
	s := show(t)
	s.start("r", `{"document":{"schema":"s","name":"again","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"a","type":"start"},
		{"id":"work","type":"tool_call","config":{"server":"s","tool":"t","arguments":{"q":"find it"}}},
		{"id":"loop","type":"switch","config":{"cases":[{"when":".n == -1","target":"z"}],"default":"work"}},{"id":"z","type":"end"}],
		"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"work"},{"source":"work","target":"loop"}]}`, map[string]any{"n": 16.0})
	for n := range 5 {
		visit := s.get(fragment.VisitPath("r", "work", n+1))
		s.requireText(visit, "find it", fmt.Sprintf(`"n": %d`, 16+n))
		if strings.Contains(visit, "Outcome") || strings.Contains(visit, "Changes of the state") {
			t.Errorf("visit %d has ended:\n%s", n+1, visit)
		}
		_, err := s.engine.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "work", OK: true, Result: map[string]any{"n": 17.0 + float64(n)}})
		if err != nil {
			t.Fatal(err)
		}
		visit = s.get(fragment.VisitPath("r", "work", n+1))
		s.requireText(visit, "find it", "Outcome", fmt.Sprintf(`"n": %d`, 16+n), "Changes of the state", fmt.Sprint(17+n), fragment.VisitPath("r", "work", n+2))
		if fresh := show(t, func(o *Options) { o.Engine = s.engine }); fresh.get(fragment.VisitPath("r", "work", n+1)) != visit {
			t.Errorf("visit %d differs from a page that has folded all of the run at once", n+1)
		}
	}
}

// TestUnfoldedBranches: a page leads to the picture with each branch of a block that is folded, and back; other ids unfold nothing.
func TestUnfoldedBranches(t *testing.T) {
	t.Parallel()
	s := show(t)
	var branches, nodes, edges []string
	for i := range 9 {
		branches = append(branches, fmt.Sprintf(`{"name":"b%d","entry":"work%d"}`, i, i))
		nodes = append(nodes, fmt.Sprintf(`{"id":"work%d","type":"step","config":{"handler":"h"}}`, i))
		edges = append(edges, fmt.Sprintf(`{"source":"work%d","target":"z"}`, i))
	}
	wide := `{"document":{"schema":"s","name":"wide","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"a","type":"start"},
		{"id":"fan","type":"parallel","config":{"join":"all","branches":[` + strings.Join(branches, ",") + `]}},` + strings.Join(nodes, ",") + `,{"id":"z","type":"end"}],
		"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"fan"},{"source":"fan","target":"z"},` + strings.Join(edges, ",") + `]}`
	for _, id := range []string{"r/1", "."} {
		s.start(id, wide, nil)
		path := fragment.RunPath(id)
		unfolded := path + "?unfold=fan"
		if strings.Contains(path, "?") {
			unfolded = path + "&unfold=fan"
		}
		page := s.get(path + strings.TrimPrefix(unfolded, path)[:1] + "unfold=begin&unfold=fan%22")
		s.requireText(page, `× 9`, unfolded+"#graph", "Show each branch of fan")
		if strings.Contains(page, `id="n-work8"`) {
			t.Error("all branches are drawn")
		}
		page = s.get(unfolded)
		s.requireText(page, path+"#graph", "Fold the branches of fan")
		if !strings.Contains(page, `id="n-work8"`) {
			t.Error("not all branches are drawn")
		}
	}
}

// TestRunsThatWaitForAWorker: the page of a run that no worker serves says so, and so do the start page and the page of the system.
func TestRunsThatWaitForAWorker(t *testing.T) {
	t.Parallel()
	engine := enginetest.Closing(t, enginetest.Must(graph.New(historymem.New(), graph.Options{Work: graph.WorkNone})))
	s := show(t, func(o *Options) { o.Engine = engine })
	s.engine = engine
	s.start("r", `{"document":{"schema":"s","name":"pay","version":"1"},"state_schema":{"type":"object"},
		"nodes":[{"id":"a","type":"start"},{"id":"charge","type":"step","config":{"handler":"charge"}},{"id":"z","type":"end"}],
		"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"charge"},{"source":"charge","target":"z"}]}`, nil)
	for path, want := range map[string]string{
		"/runs/r": "The run waits for a worker: lane default/step:charge, next, since ",
		"/":       "No worker serves default/step:charge, where 1 run waits since ",
		"/system": "<td>default/step:charge</td><td>1</td>",
	} {
		if body := s.get(path); !strings.Contains(body, want) || !strings.Contains(body, "handler &#34;charge&#34; in WORKFLOW_ENGINE_STEP_COMMANDS") {
			t.Errorf("%s has not %q:\n%s", path, want, body)
		}
	}
	if body := s.get("/runs/r"); strings.Contains(body, "is not configured here") {
		t.Errorf("the front process lacks something:\n%s", body)
	}
}
