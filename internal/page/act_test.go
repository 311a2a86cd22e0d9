package page

import (
	"context"
	"html/template"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	runview "github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
)

// TestAnAnswer is recorded once, with the person, and leads to the run; the same form leads there again, another one is refused.
func TestAnAnswer(t *testing.T) {
	t.Parallel()
	for name, fields := range map[string][]string{
		"fields": {"f0", "true", "f1", "17.5"},
		"JSON":   {fragment.JSONField, `{"approve": true, "amount": 17.5}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := browse(t).letIn()
			b.start("a/b")
			form, late := b.questionForm("a/b", fields...), b.questionForm("a/b", "f0", "false")
			res := b.do("POST", fragment.QuestionPath("a/b", "ask#1"), form)
			b.want(res, http.StatusSeeOther)
			if at := res.Header.Get("Location"); at != "/runs/a%2Fb" {
				t.Errorf("led to %s", at)
			}
			if run := b.status("a/b"); run.Status != machine.Completed || run.FinalState["approve"] != true || run.FinalState["amount"] != 17.5 {
				t.Errorf("%s with %v", run.Status, run.FinalState)
			}
			by := history.Actor{}
			for _, r := range b.records("a/b") {
				if r.Name == history.InterruptResumed || r.Payload.Actor != nil {
					if r.Payload.Actor != nil {
						by = *r.Payload.Actor
					}
				}
			}
			if by.Via != "page" || by.Name != "kim" {
				t.Errorf("recorded for %v", by)
			}
			before := len(b.records("a/b"))
			b.want(b.do("POST", fragment.QuestionPath("a/b", "ask#1"), form), http.StatusSeeOther)
			b.letIn() // the session that remembers the form is another one
			again := b.do("POST", fragment.QuestionPath("a/b", "ask#1"), form)
			if b.want(again, http.StatusSeeOther); again.Header.Get("Location") != fragment.QuestionPath("a/b", "ask#1") {
				t.Errorf("the same answer leads to %s", again.Header.Get("Location"))
			}
			if told := b.want(b.do("GET", fragment.QuestionPath("a/b", "ask#1"), nil), http.StatusOK); !strings.Contains(told, "Answered by kim") {
				t.Errorf("told %s", told)
			}
			if told := b.want(b.do("POST", fragment.QuestionPath("a/b", "ask#1"), late), http.StatusConflict); !strings.Contains(told, "Answered by kim") || !strings.Contains(told, "explain ANSWERED_DIFFERENTLY") {
				t.Errorf("told %s", told)
			}
			if len(b.records("a/b")) != before {
				t.Error("the second answer was recorded")
			}
		})
	}
}

// TestARefusedFormIsSentAgain: a form that the database refused is done when it is sent again.
func TestARefusedFormIsSentAgain(t *testing.T) {
	t.Parallel()
	b := browse(t)
	locked := &lockedEngine{Engine: b.engine, err: problem.New(problem.StoreLocked, "locked")}
	b.page.o.Engine = locked
	b.letIn()
	b.start("a")
	form := b.questionForm("a", "f0", "true")
	b.want(b.do("POST", "/runs/a/questions/ask%231", form), http.StatusServiceUnavailable)
	locked.err = nil
	b.want(b.do("POST", "/runs/a/questions/ask%231", form), http.StatusSeeOther)
	if run := b.status("a"); run.Status != machine.Completed {
		t.Errorf("the run is %s", run.Status)
	}
}

// lockedEngine is an engine whose database takes no answer as long as err is set.
type lockedEngine struct {
	graph.Engine
	err error
}

func (e *lockedEngine) Resume(ctx context.Context, req graph.ResumeRequest) (*runview.Run, error) {
	if e.err != nil {
		return nil, e.err
	}
	return e.Engine.Resume(ctx, req)
}

// TestSentForms: a session remembers the last forms that were taken, and waits for one that is being answered.
func TestSentForms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := &session{}
		_, refused := one.send("a")
		second := make(chan string)
		go func() {
			to, answered := one.send("a")
			if answered != nil {
				answered("/runs/a")
			}
			second <- to
		}()
		synctest.Wait()
		refused("")
		if to := <-second; to != "" {
			t.Errorf("the second is done with %q, after a refusal", to)
		}
		for i := range 2 * maxSent {
			if to, answered := one.send("a"); answered != nil || to != "/runs/a" {
				t.Fatalf("after %d forms it is forgotten", i)
			}
			if i == maxSent-1 {
				break
			}
			_, answered := one.send(strconv.Itoa(i))
			answered("/")
		}
		_, answered := one.send("last")
		answered("/")
		if _, answered := one.send("a"); answered == nil || len(one.sent) != maxSent || len(one.order) != maxSent {
			t.Errorf("it remembers %d forms in the order of %d", len(one.sent), len(one.order))
		}
	})
}

// TestARefusedAnswer comes back: nothing is recorded, and the page of the question gets what was typed and the reasons by field.
func TestARefusedAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fields  []string
		mistake string
	}{
		"not a number":        {[]string{"f0", "true", "f1", "much"}, "f1"},
		"against the schema":  {[]string{"f0", "true", "f1", "101"}, "f1"},
		"no JSON":             {[]string{fragment.JSONField, `{"approve": tru}`}, fragment.JSONField},
		"no object":           {[]string{fragment.JSONField, `[1]`}, fragment.JSONField},
		"JSON with a surplus": {[]string{fragment.JSONField, `{"approve": true, "x": 1}`}, fragment.JSONField},
		"a field twice":       {[]string{fragment.JSONField, `{"approve": true, "approve": false}`}, fragment.JSONField},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := browse(t).letIn()
			b.start("a")
			before := len(b.records("a"))
			var shown *submitted
			b.page.views = http.NewServeMux() // in the place of the pages, which have tests of their own
			b.page.views.HandleFunc("GET /runs/{id}/questions/{key}", func(w http.ResponseWriter, r *http.Request) {
				shown = submittedOf(r)
				w.(*rendering).view = view{Title: runID(r) + " " + r.PathValue("key")}
			})
			page := b.want(b.do("POST", "/runs/a/questions/ask%231", b.questionForm("a", c.fields...)), http.StatusUnprocessableEntity)
			if !strings.Contains(page, "<title>a ask#1 ·") {
				t.Errorf("not the page of the question: %s", page)
			}
			if shown == nil || shown.Mistakes[c.mistake] == "" {
				t.Fatalf("shown again: %+v", shown)
			}
			for i := 0; i < len(c.fields); i += 2 {
				if got := url.Values(shown.Values).Get(c.fields[i]); got != c.fields[i+1] {
					t.Errorf("%s has %q", c.fields[i], got)
				}
			}
			if len(b.records("a")) != before {
				t.Error("something was recorded")
			}
		})
	}
}

// TestAnotherQuestion: a form is not taken for another question under the same key.
func TestAnotherQuestion(t *testing.T) {
	t.Parallel()
	b := browse(t).letIn()
	b.start("a")
	p := *pendingQuestion(b.status("a"), "a", "ask#1")
	for name, change := range map[string]func(){
		"prompt": func() { p.Prompt = "Pay more?" },
		"seq":    func() { p.QuestionSeq++ },
		"shown":  func() { p.Show = map[string]any{"amount": 1.0} },
	} {
		p = *pendingQuestion(b.status("a"), "a", "ask#1")
		change()
		form := b.form(func(r *http.Request) fragment.FormToken { return b.page.questionToken(r, &p) }, "f0", "true")
		b.want(b.do("POST", "/runs/a/questions/ask%231", form), http.StatusForbidden)
		if b.status("a").Status != machine.Interrupted {
			t.Fatalf("%s: the answer was taken", name)
		}
	}
}

// TestActs: cancel, fork and signal lead to the run, and a refusal is shown with its code.
func TestActs(t *testing.T) {
	t.Parallel()
	b := browse(t).letIn()
	for _, id := range []string{"a", ".."} {
		b.start(id)
		b.want(b.do("POST", fragment.ActPath(id, "signal"), b.runForm(id, "name", "x")), http.StatusConflict)
		b.want(b.do("POST", fragment.ActPath(id, "fork"), b.runForm(id, "seq", "many")), http.StatusUnprocessableEntity)
		b.want(b.do("POST", fragment.ActPath(id, "fork"), b.runForm(id)), http.StatusUnprocessableEntity)
		b.want(b.do("POST", fragment.ActPath(id, "retry"), b.runForm(id)), http.StatusUnprocessableEntity)
		b.want(b.do("POST", fragment.ActPath(id, "dance"), b.runForm(id)), http.StatusNotFound)

		res := b.do("POST", fragment.ActPath(id, "fork"), b.runForm(id, "seq", "2"))
		b.want(res, http.StatusSeeOther)
		fork, _ := url.PathUnescape(strings.TrimPrefix(res.Header.Get("Location"), "/runs/"))
		if run := b.status(fork); run.ForkedFrom.ExecutionID != id {
			t.Errorf("%s forked from %v", fork, run.ForkedFrom)
		}
		res = b.do("POST", fragment.ActPath(id, "cancel"), b.runForm(id, "reason", "no longer needed:\r\nordered twice"))
		b.want(res, http.StatusSeeOther)
		if at := res.Header.Get("Location"); at != fragment.RunPath(id) {
			t.Errorf("led to %s", at)
		}
		if run := b.status(id); run.Status != machine.Cancelled || run.Reason != "no longer needed:\nordered twice" {
			t.Errorf("%s: %q", run.Status, run.Reason)
		}
		if html := b.want(b.do("GET", fragment.RunPath(id), nil), http.StatusOK); strings.Contains(html, ">Retry</button>") || !strings.Contains(html, ">Fork</button>") {
			t.Errorf("a cancelled run can be forked, not retried: %s", html)
		}
		b.want(b.do("POST", fragment.ActPath(id, "handle"), b.runForm(id, "note", "done by phone")), http.StatusSeeOther)
	}
}

// TestAStart starts a workflow by its name and leads to the run.
func TestAStart(t *testing.T) {
	t.Parallel()
	b := browse(t).letIn()
	if err := b.engine.RegisterWorkflow("asks", enginetest.Define(t, asks)); err != nil {
		t.Fatal(err)
	}
	token := func(r *http.Request) fragment.FormToken { return b.page.startToken(r, "asks") }
	res := b.do("POST", "/workflows/asks/start", b.form(token, fragment.JSONField, `{"amount": 1}`, "title", "Invoice 7", "execution_id", "i7"))
	b.want(res, http.StatusSeeOther)
	if at := res.Header.Get("Location"); at != "/runs/i7" {
		t.Errorf("led to %s", at)
	}
	if run := b.status("i7"); run.Title != "Invoice 7" || run.State["amount"] != 1.0 {
		t.Errorf("started %q with %v", run.Title, run.State)
	}
	same := []string{fragment.JSONField, `{"amount": 1}`, "title", "Invoice 7", "execution_id", "i7"}
	again := b.do("POST", "/workflows/asks/start", b.form(token, same...))
	if b.want(again, http.StatusSeeOther); again.Header.Get("Location") != "/runs/i7" {
		t.Errorf("the same start leads to %s", again.Header.Get("Location"))
	}
	for name, other := range map[string][]string{
		"input": {fragment.JSONField, `{}`, "title", "Invoice 7", "execution_id", "i7"}, "title": {fragment.JSONField, `{"amount": 1}`, "title", "Invoice 8", "execution_id", "i7"},
	} {
		page := b.want(b.do("POST", "/workflows/asks/start", b.form(token, other...)), http.StatusConflict)
		for _, want := range []string{"belongs to another run", `<a href="/runs/i7">i7</a>`, other[3]} {
			if !strings.Contains(page, want) {
				t.Errorf("another %s: no %s in %s", name, want, page)
			}
		}
		if strings.Contains(page, "recover") || strings.Contains(page, "AllowExisting") {
			t.Errorf("another %s: %s", name, page)
		}
	}
}

// TestARefusalOfTheEngine is shown with its code.
func TestARefusalOfTheEngine(t *testing.T) {
	t.Parallel()
	b := browse(t).letIn()
	b.start("a")
	form := b.runForm("a", "reason", "x")
	if _, err := b.engine.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "a", Payload: map[string]any{"approve": true}}); err != nil {
		t.Fatal(err)
	}
	b.want(b.do("POST", "/runs/a/cancel", form), http.StatusConflict)
	if page := b.want(b.do("POST", fragment.QuestionPath("none", "ask#1"), form), http.StatusNotFound); !strings.Contains(page, "EXECUTION_NOT_FOUND") {
		t.Errorf("no code: %s", page)
	}
}

// TestARetry has the options of the engine: a corrected state, an id, the registered definition, and another retry beside a first one. A refused
// form keeps what was typed, and the hint names the option.
func TestARetry(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	version := func(v string) string {
		return `{"document":{"schema":"s","name":"work","version":"` + v + `"},"state_schema":{"type":"object"},"nodes":[{"id":"a","type":"start"},
			{"id":"do","type":"step","config":{"handler":"h` + v + `"}},{"id":"z","type":"end"}],
			"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"do"},{"source":"do","target":"z"}]}`
	}
	if err := os.WriteFile(filepath.Join(folder, "work.workflow.json"), []byte(version("2")), 0o600); err != nil {
		t.Fatal(err)
	}
	b := browse(t, func(o *Options) { o.Catalog = catalog.New(folder, catalog.Options{}) }).letIn()
	_, err := b.engine.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: enginetest.Define(t, version("1")), Input: map[string]any{"n": 1.0}, Wait: graph.Wait{Limit: graph.NoWait}})
	if err == nil {
		_, err = b.engine.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "do", Error: "broken", Caller: graph.Caller{Wait: graph.Wait{Limit: graph.NoWait}}})
	}
	if run := b.status("r"); err != nil || run.Status != machine.Failed {
		t.Fatalf("%s, %v", run.Status, err)
	}
	page := b.want(b.do("GET", "/runs/r", nil), http.StatusOK)
	hash := enginetest.Define(t, version("2")).Hash()
	for _, want := range []string{`name="anew"`, `name="repeat_effects"`, `name="current_config"`, `name="correction"`, `name="id"`, `name="definition" value="` + hash + `"`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in %s", want, page)
		}
	}
	if strings.Contains(page, `name="again"`) {
		t.Error("a first retry is offered beside another one")
	}
	retry := func(status int, values ...string) string {
		t.Helper()
		return b.want(b.do("POST", "/runs/r/retry", b.runForm("r", values...)), status)
	}
	retry(http.StatusUnprocessableEntity, "correction", "{")
	retry(http.StatusUnprocessableEntity, "definition", "another")
	retry(http.StatusSeeOther, "id", " second ", "correction", `{"n": 2}`, "definition", hash)
	if run := b.status("second"); run.State["n"] != 2.0 || run.DefinitionHash != hash || run.Lineage.RetryOf != "r" {
		t.Errorf("the retry has %v and follows %s", run.State, run.DefinitionHash)
	}
	refused := retry(http.StatusConflict, "anew", "yes", "correction", `{"n": 3}`, "id", "third")
	for _, want := range []string{"ALREADY_RETRIED", template.HTMLEscapeString(optionAgain), `name="again"`, `name="anew" value="yes" checked`, `{&#34;n&#34;: 3}`, `value="third"`} {
		if !strings.Contains(refused, want) {
			t.Errorf("no %s in %s", want, refused)
		}
	}
	retry(http.StatusSeeOther, "again", "yes", "id", "third")
	if run := b.status("third"); run.DefinitionVersion != "1" {
		t.Errorf("it follows version %s", run.DefinitionVersion)
	}
}

// TestFormsSentTwice: a form that is sent again, at the same time or later, changes nothing more and leads to the same run; the form of another page, or
// with other values, does.
func TestFormsSentTwice(t *testing.T) {
	t.Parallel()
	b := browse(t).letIn()
	if err := b.engine.RegisterWorkflow("asks", enginetest.Define(t, asks)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"forked", "cancelled", "answered"} {
		b.start(id)
	}
	works := enginetest.Define(t, enginetest.Linear("works", `{"id":"begin","type":"start"}`, `{"id":"work","type":"step","config":{"handler":"urn:x"}}`, `{"id":"end","type":"end"}`))
	if _, err := b.engine.Start(t.Context(), graph.StartRequest{ExecutionID: "retried", Definition: works}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.engine.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "retried", NodeID: "work", Error: "no", Code: "NO"}); err != nil {
		t.Fatal(err)
	}
	runs := func() int {
		page, err := b.engine.List(t.Context(), history.ListQuery{})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Executions)
	}
	starts := func(values ...string) url.Values {
		return b.form(func(r *http.Request) fragment.FormToken { return b.page.startToken(r, "asks") }, append(values, fragment.JSONField, `{"amount": 1}`)...)
	}
	for path, c := range map[string]struct {
		form func() url.Values
		runs int // that it adds
	}{
		"/workflows/asks/start":                    {func() url.Values { return starts() }, 1},
		"/workflow/start?name=asks":                {func() url.Values { return starts("execution_id", "mine") }, 1},
		fragment.ActPath("forked", "fork"):         {func() url.Values { return b.runForm("forked", "seq", "2") }, 1},
		fragment.ActPath("retried", "retry"):       {func() url.Values { return b.runForm("retried") }, 1},
		fragment.ActPath("cancelled", "cancel"):    {func() url.Values { return b.runForm("cancelled", "reason", "x") }, 0},
		fragment.QuestionPath("answered", "ask#1"): {func() url.Values { return b.questionForm("answered", "f0", "true") }, 0},
	} {
		form, before := c.form(), runs()
		led := make(chan string, 4)
		for range cap(led) {
			go func() {
				res := b.do("POST", path, form)
				led <- res.Header.Get("Location")
			}()
		}
		to := ""
		for i := range cap(led) {
			if at := <-led; at == "" || i > 0 && at != to {
				t.Errorf("%s leads to %q and %q", path, to, at)
			} else {
				to = at
			}
		}
		if res := b.do("POST", path, form); res.Header.Get("Location") != to {
			t.Errorf("%s leads to %q later, before to %s", path, res.Header.Get("Location"), to)
		}
		if added := runs() - before; added != c.runs {
			t.Errorf("%s made %d runs", path, added)
		}
	}
	count := 0
	for _, r := range b.records("answered") {
		if r.Name == history.InterruptResumed {
			count++
		}
	}
	if count != 1 {
		t.Errorf("answered %d times", count)
	}
	before, form := runs(), starts()
	b.want(b.do("POST", "/workflows/asks/start", form), http.StatusSeeOther)
	form.Set("title", "Another")
	b.want(b.do("POST", "/workflows/asks/start", form), http.StatusSeeOther)
	b.want(b.do("POST", "/workflows/asks/start", starts()), http.StatusSeeOther)
	if added := runs() - before; added != 3 {
		t.Errorf("three forms made %d runs", added)
	}
	forged := starts()
	forged.Set("form", forged.Get("form")+"x")
	b.want(b.do("POST", "/workflows/asks/start", forged), http.StatusForbidden)
}
