package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/httpapi"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
)

type object = map[string]any

var update = flag.Bool("update", false, "rewrite testdata/openapi.json")

const golden = "testdata/openapi.json"

// TestOpenAPI: the description is the golden file, is valid by the meta-schema of OpenAPI 3.1, and has every operation once.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	text := httpapi.OpenAPI("0")
	if *update {
		if err := os.WriteFile(golden, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(text, want) {
		t.Errorf("%s differs (%v); write it anew with go test ./internal/httpapi -run OpenAPI -update", golden, err)
	}
	var document object
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	if err := jsonschema.MustCompile("testdata/openapi-3.1.schema.json").Validate(document); err != nil {
		t.Errorf("%#v", err)
	}
	ids := map[string]bool{}
	for path, item := range document["paths"].(object) {
		for method, op := range item.(object) {
			id := op.(object)["operationId"].(string)
			if ids[id] {
				t.Errorf("%s %s: operationId %s is used twice", method, path, id)
			}
			ids[id] = true
		}
	}
	if len(ids) != 20 {
		t.Errorf("%d operations", len(ids))
	}
}

func TestWordsAreComplete(t *testing.T) {
	t.Parallel()
	if got, want := slices.Sorted(maps.Keys(httpapi.Words)), slices.Sorted(slices.Values(problem.Names())); !slices.Equal(got, want) {
		t.Errorf("translated are %q\nthe library uses %q", got, want)
	}
}

// client sends requests to an API over the real engine, and checks every answer against its schema.
type client struct {
	t       *testing.T
	handler http.Handler
	runner  *graph.Runner
	paths   object
	failure *jsonschema.Schema // of an answer with an error
	called  map[string]bool
}

const writer, reader = "writer-0123456789", "reader-0123456789"

func newClient(t *testing.T, change func(*httpapi.Options)) *client {
	t.Helper()
	tokens, findings := httpguard.ParseTokens([]byte(`{"tokens":[{"name":"ci","token":"`+writer+`"},{"name":"eyes","token":"`+reader+`","readOnly":true}]}`), func(string) {})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	runner := enginetest.Closing(t, enginetest.Must(graph.New(enginetest.Closing(t, historymem.New()), graph.Options{})))
	o := httpapi.Options{Engine: runner, Access: httpguard.Access{Tokens: tokens, Origins: []string{"https://app.example.com"}}, Redaction: history.DefaultRedaction()}
	if change != nil {
		change(&o)
	}
	var document object
	if err := json.Unmarshal(httpapi.OpenAPI("0"), &document); err != nil {
		t.Fatal(err)
	}
	failure, _ := json.Marshal(document["components"].(object)["schemas"].(object)["Error"])
	return &client{t, httpapi.New(o), runner, document["paths"].(object), jsonschema.MustCompileString("error.json", string(failure)), map[string]bool{}}
}

// request makes a request with the token that may write.
func request(t *testing.T, method, path, body string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8772"
	r.Header.Set("Authorization", "Bearer "+writer)
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// send sends a request of the operation with a path of the description.
func (c *client) send(pattern string, r *http.Request) (int, object) {
	c.t.Helper()
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	item, _ := c.paths[pattern].(object)
	op, known := item[strings.ToLower(r.Method)].(object)
	if !known {
		c.t.Fatalf("%s %s is not described", r.Method, pattern)
	}
	c.called[r.Method+" "+pattern] = true
	var answer object
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		return w.Code, object{"text": w.Body.String()}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		c.t.Fatalf("%s %s: %v: %s", r.Method, r.URL, err, w.Body)
	}
	responses := op["responses"].(object)
	status := map[int]string{200: "200", 201: "201"}[w.Code]
	if status == "" {
		if err := c.failure.Validate(answer); err != nil || codeOf(answer) == "" || answer["error"].(object)["message"] == "" {
			c.t.Errorf("%s %s: %s is not an error: %v", r.Method, r.URL, w.Body, err)
		}
		return w.Code, answer
	}
	response, described := responses[status].(object)
	if !described {
		c.t.Fatalf("%s %s answers %d, which is not described", r.Method, pattern, w.Code)
	}
	if schema, ok := response["content"].(object)["application/json"].(object)["schema"]; ok {
		text, _ := json.Marshal(schema)
		if err := jsonschema.MustCompileString("answer.json", string(text)).Validate(answer); err != nil {
			c.t.Errorf("%s %s: %s breaks its schema: %v", r.Method, r.URL, w.Body, err)
		}
	}
	return w.Code, answer
}

// want sends a request and wants a status.
func (c *client) want(status int, method, pattern, path, body string) object {
	c.t.Helper()
	got, answer := c.send(pattern, request(c.t, method, path, body))
	if got != status {
		text, _ := json.Marshal(answer)
		c.t.Errorf("%s %s %s: %d, want %d: %s", method, path, body, got, status, text)
	}
	return answer
}

func codeOf(answer object) any {
	e, _ := answer["error"].(object)
	return e["code"]
}

const (
	oneRun  = "/v1/executions/{exec_id}"
	approve = `{"document":{"schema":"s","name":"approve","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"a","type":"start"},` +
		`{"id":"q","type":"interrupt","config":{"prompt":"Refund?","resume_schema":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}},{"id":"z","type":"end"}],` +
		`"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"q"},{"source":"q","target":"z"}]}`
	signal = `{"document":{"schema":"s","name":"signal","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"a","type":"start"},` +
		`{"id":"w","type":"wait","config":{"kind":"signal","signal":"go"}},{"id":"z","type":"end"}],` +
		`"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"w"},{"source":"w","target":"z"}]}`
)

// step is a workflow with one activity of the host.
var step = enginetest.Linear("step", `{"id":"a","type":"start"}`, `{"id":"work","type":"step","config":{"handler":"urn:x"}}`, `{"id":"z","type":"end"}`)

// TestEveryOperationTwice makes each call twice: a repeated one is answered with 200 and changes nothing.
func TestEveryOperationTwice(t *testing.T) {
	t.Parallel()
	c := newClient(t, nil)
	c.want(201, "POST", "/v1/workflows", "/v1/workflows", `{"definition":`+approve+`}`)
	again := c.want(200, "POST", "/v1/workflows", "/v1/workflows", `{"definition":`+approve+`}`)
	if again["name"] != "approve" || again["version"] != "1" {
		t.Errorf("%v", again)
	}
	for _, ref := range []string{"approve", "approve@1", again["hash"].(string)} {
		if got := c.want(200, "GET", "/v1/workflows/{wf_id}", "/v1/workflows/"+ref, ""); got["hash"] != again["hash"] || got["definition"] == nil {
			t.Errorf("%s: %v", ref, got)
		}
	}
	if got := c.want(200, "GET", "/v1/workflows", "/v1/workflows", "")["workflows"].([]any); len(got) != 1 {
		t.Errorf("%v", got)
	}
	const starts = "/v1/workflows/{wf_id}/executions"
	for i, status := range []int{201, 200} {
		r := request(t, "POST", "/v1/workflows/approve/executions", `{"title":"Order 17","priority":3}`)
		r.Header.Set("Idempotency-Key", "order:17")
		if got, answer := c.send(starts, r); got != status || answer["execution_id"] != "order:17" || answer["status"] != "interrupted" {
			t.Errorf("start %d: %d %v", i, got, answer)
		}
	}
	c.want(409, "POST", starts, "/v1/workflows/approve/executions", `{"execution_id":"order:17"}`)
	c.want(404, "POST", starts, "/v1/workflows/none/executions", `{}`)
	if got := c.want(200, "GET", "/v1/questions", "/v1/questions", "")["questions"].([]any); len(got) != 1 || got[0].(object)["prompt"] != "Refund?" {
		t.Errorf("%v", got)
	}
	const run = "/v1/executions/order%3A17"
	c.want(400, "POST", oneRun+":resume", run+":resume", `{}`)
	c.want(400, "POST", oneRun+":resume", run+":resume", `{"resume_payload":{"ok":1}}`)
	for i, repeated := range []any{nil, true} {
		if got := c.want(200, "POST", oneRun+":resume", run+":resume", `{"resume_payload":{"ok":true}}`); got["status"] != "completed" || got["repeated"] != repeated {
			t.Errorf("answer %d: %v", i, got)
		}
	}
	c.want(409, "POST", oneRun+":resume", run+":resume", `{"resume_payload":{"ok":false}}`)
	c.want(409, "POST", oneRun+":cancel", run+":cancel", `{}`)
	c.want(200, "GET", oneRun, run, "")
	if got := c.want(200, "GET", oneRun, run+"?view=full&since_seq=1&wait_ms=1000", ""); got["phase"] != "completed" {
		t.Errorf("%v", got)
	}
	page := c.want(200, "GET", oneRun+"/events", run+"/events?limit=3", "")
	rest := c.want(200, "GET", oneRun+"/events", run+"/events?cursor="+page["next_cursor"].(string), "")
	if first := rest["events"].([]any)[0].(object); len(page["events"].([]any)) != 3 || first["seq"] != 4.0 {
		t.Errorf("%v", rest)
	}
	if records, err := c.runner.History(t.Context(), graph.HistoryRequest{ExecutionID: "order:17"}); err != nil || records[0].Payload.Actor == nil && records[1].Payload.Actor == nil {
		t.Errorf("no actor: %v", err)
	} else if i := slices.IndexFunc(records, func(r history.Record) bool { return r.Name == history.ResumeInterrupt }); records[i].Payload.Actor == nil || records[i].Payload.Actor.Name != "ci" || records[i].Payload.Actor.Via != "http" {
		t.Errorf("%+v", records[i].Payload.Actor)
	}
	c.want(200, "GET", oneRun+"/checkpoint", run+"/checkpoint", "")
	if got := c.want(200, "GET", oneRun+"/graph.svg", run+"/graph.svg", "")["text"].(string); !strings.HasPrefix(got, "<svg") && !strings.HasPrefix(got, "<?xml") {
		t.Error(got)
	}

	c.want(201, "POST", "/v1/executions", "/v1/executions", `{"execution_id":"s","activity_execution_mode":"host_mediated","definition":`+step+`}`)
	fails := `{"node_id":"work","outcome":{"ok":false,"error":"no","code":"NO"}}`
	for range 2 { // a run that fails is 200
		if got := c.want(200, "POST", oneRun+":submit_activity", "/v1/executions/s:submit_activity", fails); got["status"] != "failed" || got["last_error"] == nil {
			t.Errorf("%v", got)
		}
	}
	c.want(409, "POST", oneRun+":submit_activity", "/v1/executions/s:submit_activity", `{"node_id":"work","outcome":{"ok":true}}`)
	c.want(201, "POST", oneRun+":retry", "/v1/executions/s:retry", `{"new_execution_id":"s2"}`)
	c.want(409, "POST", oneRun+":retry", "/v1/executions/s:retry", `{"new_execution_id":"s3"}`)
	c.want(201, "POST", oneRun+":fork", "/v1/executions/s:fork", `{"node_id":"work","new_execution_id":"s4"}`)
	c.want(409, "POST", oneRun+":fork", "/v1/executions/s:fork", `{"node_id":"work","new_execution_id":"s4"}`)
	c.want(200, "POST", oneRun+":cancel", "/v1/executions/s4:cancel", `{"reason":"enough"}`)

	c.want(201, "POST", "/v1/executions", "/v1/executions", `{"execution_id":"w","definition":`+signal+`}`)
	c.want(409, "POST", oneRun+":signal", "/v1/executions/w:signal", `{"signal_name":"stop"}`)
	for range 2 {
		if got := c.want(200, "POST", oneRun+":signal", "/v1/executions/w:signal", `{"signal_name":"go","idempotency_key":"k"}`); got["status"] != "completed" {
			t.Errorf("%v", got)
		}
	}
	list := c.want(200, "GET", "/v1/executions", "/v1/executions?limit=2", "")
	c.want(200, "GET", "/v1/executions", "/v1/executions?phase=failed&phase=completed&limit=2&roots=true", "")
	c.want(200, "GET", "/v1/executions", "/v1/executions?limit=2&cursor="+url.QueryEscape(list["next_cursor"].(string)), "")
	c.want(200, "GET", "/openapi.json", "/openapi.json", "")
	c.want(200, "GET", "/healthz", "/healthz", "")
	c.called["GET /v1/events"] = true // TestStreams
	for path, item := range c.paths {
		for method := range item.(object) {
			if !c.called[strings.ToUpper(method)+" "+path] {
				t.Errorf("%s %s was not called", method, path)
			}
		}
	}
}

// TestRefusals: each kind of mistake has its status.
func TestRefusals(t *testing.T) {
	t.Parallel()
	c := newClient(t, func(o *httpapi.Options) { o.MaxBodyBytes = 4000 })
	const starts = "/v1/executions"
	c.want(400, "POST", starts, starts, `{"definition":1,"definition":2}`)
	c.want(400, "POST", starts, starts, `{`)
	c.want(400, "POST", starts, starts, `{"definition_ref":"x","unknown":1}`)
	c.want(400, "POST", starts, starts, `{"definition_ref":"x","input":{"n":12345678901234567890}}`)
	c.want(400, "POST", starts, starts, `{"definition_ref":"x","input":{"s":"\ud800"}}`)
	c.want(400, "POST", starts, starts, ``)
	c.want(400, "POST", starts, starts+"?wait_ms=1", `{}`)
	c.want(413, "POST", starts, starts, `{"definition_ref":"`+strings.Repeat("x", 5000)+`"}`)
	c.want(422, "POST", "/v1/workflows", "/v1/workflows", `{"definition":{"nodes":[]}}`)
	c.want(201, "POST", "/v1/workflows", "/v1/workflows", `{"definition":`+approve+`}`)
	if got := c.want(409, "POST", "/v1/workflows", "/v1/workflows", `{"definition":`+strings.Replace(approve, "Refund?", "Pay?", 1)+`}`); codeOf(got) != "DUPLICATE_WORKFLOW_ID" {
		t.Errorf("%v", got)
	}
	c.want(404, "GET", oneRun, "/v1/executions/none", "")
	c.want(400, "GET", oneRun, "/v1/executions/none?wait_ms=soon", "")
	c.want(400, "GET", starts, "/v1/executions?phase=tired", "")
	c.want(400, "GET", starts, "/v1/executions?cursor=x", "")
	c.want(400, "GET", starts, "/v1/executions?phase=%zz", "")
	c.want(400, "GET", starts, "/v1/executions?phase=failed;limit=1", "")
	c.want(400, "GET", starts, "/v1/executions?id=none", "") // lists, and would list every run
	c.want(400, "GET", oneRun, "/v1/executions/none?id=other", "")
	c.want(400, "GET", oneRun, "/v1/executions/none?execution_id=other", "")
	c.want(400, "GET", oneRun, "/v1/executions/-?id=none&id=other", "")
	c.want(400, "POST", oneRun+":cancel", "/v1/executions/none:cancel?id=other", `{}`)
	c.want(400, "GET", oneRun, "/v1/executions/", "")
	c.want(400, "GET", oneRun, "/v1/executions/..", "")
	c.want(404, "GET", oneRun, "/v1/executions/-?id=..", "")
	c.want(404, "POST", oneRun+":cancel", "/v1/executions/-:cancel?id=.", `{}`)
	c.want(404, "POST", oneRun+":cancel", "/v1/executions/x:explode", `{}`)
	c.want(404, "POST", oneRun+":cancel", "/v1/executions/x", `{}`)
	c.want(400, "POST", oneRun+":cancel", "/v1/executions/x:cancel", `{"execution_id":"y"}`)

	for name, change := range map[string]struct {
		status int
		do     func(*http.Request)
	}{
		"no token":       {401, func(r *http.Request) { r.Header.Del("Authorization") }},
		"another token":  {401, func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }},
		"a cookie":       {401, func(r *http.Request) { r.Header.Del("Authorization"); r.Header.Set("Cookie", "token="+writer) }},
		"another site":   {403, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }},
		"a local page":   {403, func(r *http.Request) { r.Header.Set("Origin", "http://localhost:3000") }},
		"an allowed one": {404, func(r *http.Request) { r.Header.Set("Origin", "https://app.example.com") }},
		"rebinding":      {403, func(r *http.Request) { r.Host = "evil.example:8772" }},
		"reading alone":  {403, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+reader) }},
		"a form":         {415, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }},
	} {
		r := request(t, "POST", "/v1/executions/x:cancel", `{}`)
		change.do(r)
		if got, answer := c.send(oneRun+":cancel", r); got != change.status {
			t.Errorf("%s: %d %v", name, got, answer)
		}
	}
	r := request(t, "GET", "/v1/executions", "")
	r.Header.Set("Authorization", "Bearer "+reader)
	if got, _ := c.send("/v1/executions", r); got != 200 {
		t.Errorf("a token that permits reading: %d", got)
	}
	r = request(t, "OPTIONS", "/v1/executions", "")
	r.Header.Set("Origin", "https://app.example.com")
	r.Header.Set("Access-Control-Request-Method", "POST")
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	if w.Code != 204 || w.Header().Get("Access-Control-Allow-Origin") != "https://app.example.com" {
		t.Errorf("preflight: %d %v", w.Code, w.Header())
	}
	w = httptest.NewRecorder()
	c.handler.ServeHTTP(w, request(t, "DELETE", "/v1/executions", ""))
	if w.Code != 405 || w.Header().Get("Allow") != "GET, POST" {
		t.Errorf("DELETE: %d %v", w.Code, w.Header())
	}
}

// TestOtherSites: a page of another site cannot load an answer as a picture, a script or a frame, for which browsers send no Origin. A link may lead
// to one.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	c := newClient(t, func(o *httpapi.Options) { o.Access.Tokens = httpguard.Tokens{} })
	c.want(201, "POST", "/v1/executions", "/v1/executions", `{"execution_id":"r","definition":`+approve+`}`)
	for _, of := range []struct {
		site, mode, dest string
		status           int
	}{
		{"cross-site", "no-cors", "image", 403}, {"same-site", "no-cors", "image", 403}, {"cross-site", "navigate", "iframe", 403}, {"cross-site", "no-cors", "empty", 403},
		{"cross-site", "navigate", "document", 200}, {"none", "navigate", "document", 200}, {"same-origin", "no-cors", "image", 200}, {"", "", "", 200},
	} {
		r := request(t, "GET", "/v1/executions/r/graph.svg", "")
		for name, value := range map[string]string{"Sec-Fetch-Site": of.site, "Sec-Fetch-Mode": of.mode, "Sec-Fetch-Dest": of.dest} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		if w.Code != of.status || w.Header().Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%v: %d %v", of, w.Code, w.Header())
		}
	}
}

// TestStartsAtTheSameTime: of several starts with one Idempotency-Key, one creates the run; the others are repeated calls.
func TestStartsAtTheSameTime(t *testing.T) {
	t.Parallel()
	c := newClient(t, nil)
	c.want(201, "POST", "/v1/workflows", "/v1/workflows", `{"definition":`+approve+`}`)
	type got struct {
		status   int
		repeated any
	}
	answers := make(chan got, 8)
	for range cap(answers) {
		go func() {
			r := request(t, "POST", "/v1/workflows/approve/executions", `{"input":{"n":1}}`)
			r.Header.Set("Idempotency-Key", "once")
			w := httptest.NewRecorder()
			c.handler.ServeHTTP(w, r)
			var answer object
			_ = json.Unmarshal(w.Body.Bytes(), &answer)
			answers <- got{w.Code, answer["repeated"]}
		}()
	}
	count := map[got]int{}
	for range cap(answers) {
		count[<-answers]++
	}
	if count[got{201, nil}] != 1 || count[got{200, true}] != cap(answers)-1 {
		t.Errorf("%v", count)
	}
}

// TestStatuses: the status of an error follows from its code.
func TestStatuses(t *testing.T) {
	t.Parallel()
	for code, want := range map[problem.Code]int{
		problem.ValidationError: 400, problem.ExecutionNotFound: 404, problem.WorkflowNotFound: 404, problem.CancelNotAllowed: 409, problem.RunComputing: 409,
		problem.MemoryBudgetExceeded: 429, problem.StoreLocked: 503, problem.RunnerClosed: 503, problem.Internal: 500, problem.Unsupported: 501, problem.PersonRequired: 403,
	} {
		c := newClient(t, func(o *httpapi.Options) { o.Engine = failing{o.Engine, problem.New(code, "no")} })
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, request(t, "GET", "/v1/executions/x", ""))
		if w.Code != want || (w.Header().Get("Retry-After") != "") != (want == 429 || want == 503) {
			t.Errorf("%s: %d %v", code, w.Code, w.Header())
		}
	}
}

// TestStreams: records come as they are made, after the seq of Last-Event-ID, and the stream ends with the run.
func TestStreams(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	c := newClient(t, func(o *httpapi.Options) { o.Stop = stop })
	site := httptest.NewServer(c.handler)
	defer site.Close()
	open := func(path, last string) (*bufio.Scanner, io.Closer) {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", site.URL+path, nil)
		r.Header.Set("Authorization", "Bearer "+reader)
		r.Header.Set("Accept", "text/event-stream")
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil || answer.StatusCode != 200 {
			t.Fatalf("%v %v", answer, err)
		}
		return bufio.NewScanner(answer.Body), answer.Body
	}
	next := func(lines *bufio.Scanner, prefix string) string {
		for lines.Scan() {
			if text, found := strings.CutPrefix(lines.Text(), prefix); found {
				return text
			}
		}
		return ""
	}
	c.want(201, "POST", "/v1/executions", "/v1/executions", `{"execution_id":"r","definition":`+approve+`}`)
	all, body := open("/v1/events", "")
	defer body.Close()
	first, one := open("/v1/executions/r/events", "")
	if id := next(first, "id: "); id != "1" {
		t.Errorf("first record %s", id)
	}
	one.Close()
	second, two := open("/v1/executions/r/events", "3")
	defer two.Close()
	if id := next(second, "id: "); id != "4" {
		t.Errorf("resumed at record %s", id)
	}
	c.want(200, "POST", oneRun+":resume", "/v1/executions/r:resume", `{"resume_payload":{"ok":true}}`)
	if name := next(second, "event: end"); name != "" || !strings.Contains(next(second, "data: "), `"completed"`) {
		t.Errorf("the stream ended with %q", name)
	}
	// Follow may miss what was before it began.
	c.want(201, "POST", "/v1/executions", "/v1/executions", `{"execution_id":"r2","definition":`+approve+`}`)
	if data := next(all, "data: "); !strings.Contains(data, `"execution_id":"r`) {
		t.Errorf("change %q", data)
	}
	for _, path := range []string{"/v1/events", "/v1/executions/r2/events"} { // these answers have no body, so nothing else would end them
		r := request(t, "HEAD", path, "")
		r.Header.Set("Accept", "text/event-stream")
		w := httptest.NewRecorder()
		if c.handler.ServeHTTP(w, r); w.Code != 200 {
			t.Errorf("HEAD %s: %d", path, w.Code)
		}
	}
	close(stop)
	for all.Scan() {
	}
}

// failing is an engine whose Status fails.
type failing struct {
	graph.Engine
	err error
}

func (f failing) Status(context.Context, graph.StatusRequest) (*view.Run, error) { return nil, f.err }

// TestTheWalkOfThePage makes the requests of docs/http-api.md.
func TestTheWalkOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/http-api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```sh walk\n")
	walk, _, _ := strings.Cut(rest, "```")
	c := newClient(t, nil)
	option := regexp.MustCompile(`-([Hd]) (?:'([^']*)'|"([^"]*)")`)
	requests := 0
	named := regexp.MustCompile(`(?m)^(TOKEN|READER)=(\S+)\n`)
	if found := named.FindAllStringSubmatch(walk, -1); len(found) != 2 || strings.Count(string(page), found[0][2]) != 2 || strings.Count(string(page), found[1][2]) != 2 {
		t.Errorf("the tokens are not those of the file: %q", found)
	}
	for command := range strings.SplitSeq(strings.TrimSpace(named.ReplaceAllString(walk, "")), "\ncurl ") {
		command = "curl " + strings.TrimPrefix(strings.ReplaceAll(command, "\\\n", ""), "curl ")
		requests++
		method, body, header := "GET", "", http.Header{}
		for _, m := range option.FindAllStringSubmatch(command, -1) {
			if m[1] == "d" {
				method, body = "POST", m[2]
				continue
			}
			name, value, _ := strings.Cut(m[2]+m[3], ": ")
			header.Set(name, strings.NewReplacer("$TOKEN", writer, "$READER", reader).Replace(value))
		}
		_, path, found := strings.Cut(command, "http://127.0.0.1:8772")
		if !strings.HasPrefix(command, "curl ") || !found {
			t.Fatalf("%q is not a request", command)
		}
		r := request(t, method, path, body)
		r.Header = header
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		if w.Code != 200 && w.Code != 201 {
			t.Errorf("%s: %d %s", command, w.Code, w.Body)
		}
		if strings.Contains(command, "text/event-stream") && !strings.Contains(w.Body.String(), `"status":"completed"`) {
			t.Errorf("%s: %s", command, w.Body)
		}
	}
	if requests != 6 {
		t.Errorf("%d requests", requests)
	}
}

// TestCodesOfRefusals: a refusal for the token has a code of its own, another start under a used key is a conflict, and the status has the
// fields that other answers have.
func TestCodesOfRefusals(t *testing.T) {
	t.Parallel()
	c := newClient(t, nil)
	c.want(201, "POST", "/v1/workflows", "/v1/workflows", `{"definition":`+approve+`}`)
	start := func(token, input string) (int, string) {
		r := request(t, "POST", "/v1/workflows/approve/executions", `{"input":`+input+`}`)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Idempotency-Key", "once")
		status, answer := c.send("/v1/workflows/{wf_id}/executions", r)
		failure, _ := answer["error"].(object)
		code, _ := failure["code"].(string)
		return status, code
	}
	for _, tt := range []struct {
		token, input string
		status       int
		code         string
	}{
		{"x", `{"n":1}`, 401, "UNAUTHORIZED"}, {reader, `{"n":1}`, 403, "FORBIDDEN"}, {writer, `{"n":1}`, 201, ""},
		{writer, `{"n":1}`, 200, ""}, {writer, `{"n":2}`, 409, "SUBMIT_VALIDATION_ERROR"},
	} {
		if status, code := start(tt.token, tt.input); status != tt.status || code != tt.code {
			t.Errorf("%s %s: %d %s, want %d %s", tt.token, tt.input, status, code, tt.status, tt.code)
		}
	}
	if got := c.want(200, "GET", oneRun, "/v1/executions/once", ""); got["status"] != "interrupted" || got["node_visits"] != 2.0 {
		t.Errorf("%v", got)
	}
}

// TestARunThatWaitsForAWorker: the status of a run of a front process has its lane, which no worker serves.
func TestARunThatWaitsForAWorker(t *testing.T) {
	t.Parallel()
	front := enginetest.Closing(t, enginetest.Must(graph.New(enginetest.Closing(t, historymem.New()), graph.Options{Work: graph.WorkNone})))
	c := newClient(t, func(o *httpapi.Options) { o.Engine = front })
	const charge = `{"document":{"schema":"s","name":"pay","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"a","type":"start"},` +
		`{"id":"charge","type":"step","config":{"handler":"charge"}},{"id":"z","type":"end"}],` +
		`"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"charge"},{"source":"charge","target":"z"}]}`
	c.want(201, "POST", "/v1/executions", "/v1/executions", `{"execution_id":"r","queue":"gpu","wait_ms":0,"definition":`+charge+`}`)
	answer := c.want(200, "GET", oneRun, "/v1/executions/r", "")
	ready, _ := answer["ready"].(object)
	if ready["lane"] != "gpu/step:charge" || ready["ahead"] != 0.0 || ready["workers"] != 0.0 || ready["since"] == nil {
		t.Errorf("%v", answer)
	}
	c.want(400, "POST", "/v1/executions", "/v1/executions", `{"queue":"no queue","definition":`+charge+`}`)
}
