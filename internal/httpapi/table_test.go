package httpapi_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/authoring"
	"github.com/workflows-engine/workflows-engine/internal/httpapi"
)

// eachOperation calls f with every operation of the description, and an address of it.
func (c *client) eachOperation(f func(method, pattern, path string)) {
	for pattern, item := range c.paths {
		for method := range item.(object) {
			f(strings.ToUpper(method), pattern, strings.NewReplacer("{wf_id}", "approve", "{exec_id}", "r").Replace(pattern))
		}
	}
}

// TestReadOnlyTokens: a token that permits reading alone is refused by each operation that is not a GET, and by no other.
func TestReadOnlyTokens(t *testing.T) {
	t.Parallel()
	c := newClient(t, nil)
	c.want(201, "POST", "/v1/executions", "/v1/executions", `{"execution_id":"r","definition":`+approve+`}`)
	count := map[string]int{}
	c.eachOperation(func(method, pattern, path string) {
		if pattern == "/v1/events" { // does not end
			return
		}
		count[method]++
		r := request(t, method, path, map[string]string{"POST": "{}"}[method])
		r.Header.Set("Authorization", "Bearer "+reader)
		if got, answer := c.send(pattern, r); (got == http.StatusForbidden) != (method == "POST") {
			t.Errorf("%s %s: %d %v", method, pattern, got, answer)
		}
	})
	if count["GET"] < 10 || count["POST"] < 9 {
		t.Errorf("tried %v", count)
	}
	if records := c.want(200, "GET", oneRun+"/events", "/v1/executions/r/events?limit=100", "")["events"].([]any); len(records) > 10 {
		t.Errorf("%d records", len(records))
	}
}

// TestBodiesOfEveryOperation: no operation takes a field twice, half a character, a number that would change, or another field than its own.
func TestBodiesOfEveryOperation(t *testing.T) {
	t.Parallel()
	c := newClient(t, nil)
	c.want(201, "POST", "/v1/executions", "/v1/executions", `{"execution_id":"r","definition":`+approve+`}`)
	before := c.want(200, "GET", oneRun, "/v1/executions/r", "")["seq"]
	c.eachOperation(func(method, pattern, path string) {
		if method != "POST" {
			return
		}
		for _, body := range []string{
			`{"reason":"a","reason":"b"}`, `{"input":{"a":1,"a":2}}`, `{"x":"\ud800"}`, `{"\udc00":1}`, `{"input":{"s":["\ud83d"]}}`, `{"n":12345678901234567890}`,
			`{"unknown_field":1}`, `[]`, `"x"`, `null`, `{}{}`, `{"a":1} x`, "\xff", `{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, "{\"a\x00\":1}",
		} {
			if got, answer := c.send(pattern, request(t, method, path, body)); got != http.StatusBadRequest {
				t.Errorf("%s %s %.60s: %d %v", method, pattern, body, got, answer)
			}
		}
	})
	if after := c.want(200, "GET", oneRun, "/v1/executions/r", "")["seq"]; after != before {
		t.Errorf("the run has %v records, had %v", after, before)
	}
}

// TestEveryId: whatever an id holds, its run is found at the address of Location, and at no other one.
func TestEveryId(t *testing.T) {
	t.Parallel()
	c := newClient(t, nil)
	c.want(201, "POST", "/v1/workflows", "/v1/workflows", `{"definition":`+approve+`}`)
	for _, id := range []string{".", "..", "-", "a/b", "a:b", "a:cancel", ":", "a%2Fb", "%", "%3A", "a?b=c&d", "a#b", "ä ö", "/", "//", "../..", "a+b", `"><script>`} {
		text, _ := json.Marshal(id)
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, request(t, "POST", "/v1/executions", `{"definition_ref":"approve","execution_id":`+string(text)+`}`))
		at := w.Header().Get("Location")
		if w.Code != http.StatusCreated || strings.ContainsAny(at, "\r\n\x00") {
			t.Errorf("%q: %d %s at %q", id, w.Code, w.Body, at)
			continue
		}
		path, query, has := strings.Cut(at, "?")
		if has {
			query = "?" + query
		}
		for _, part := range []string{"", "/events", "/checkpoint", "/graph.svg"} {
			got, answer := c.send(oneRun+part, request(t, "GET", path+part+query, ""))
			if got != http.StatusOK && (part != "/checkpoint" || got != http.StatusNotFound) {
				t.Errorf("%q: GET %s: %d %v", id, path+part+query, got, answer)
			}
			if found, said := answer["execution_id"]; said && found != id {
				t.Errorf("%q: GET %s is about %q", id, path+part+query, found)
			}
		}
		if got := c.want(200, "POST", oneRun+":cancel", path+":cancel"+query, `{}`); got["execution_id"] != id || got["status"] != "cancelled" {
			t.Errorf("%q: %v", id, got)
		}
		if got := c.want(200, "GET", oneRun, "/v1/executions/-?id="+url.QueryEscape(id), ""); got["execution_id"] != id {
			t.Errorf("%q: %v", id, got)
		}
	}
	for _, id := range []string{`x\u0000y`, `a\r\nX-Evil: 1`, `\u202e`} {
		c.want(400, "POST", "/v1/executions", "/v1/executions", `{"definition_ref":"approve","execution_id":"`+id+`"}`)
	}
	if list := c.want(200, "GET", "/v1/executions", "/v1/executions?phase=interrupted", "")["executions"].([]any); len(list) != 0 {
		t.Errorf("runs that were not cancelled: %v", list)
	}
}

// TestEveryCode: each code of a refused call has a status, and the description lists each code that there is.
func TestEveryCode(t *testing.T) {
	t.Parallel()
	var document struct {
		Components struct {
			Schemas struct {
				Error struct {
					Properties struct {
						Error struct {
							Properties struct{ Code struct{ Enum []string } }
						}
					}
				}
			}
		}
	}
	if err := json.NewDecoder(bytes.NewReader(httpapi.OpenAPI("0"))).Decode(&document); err != nil {
		t.Fatal(err)
	}
	described := document.Components.Schemas.Error.Properties.Error.Properties.Code.Enum
	warnings := []string{"DEFINITION_NOT_CHANGED", "MODE_NOT_CHANGED", "CANCEL_GOES_ON", "RUN_WILL_FAIL", "AGENT_PARTIAL_ANSWER"} // part of an answer
	for _, group := range authoring.CodeGroups() {
		for _, code := range group.Codes {
			if !slices.Contains(described, code.Name) {
				t.Errorf("%s is not in openapi.json", code.Name)
			}
			_, decided := httpapi.Statuses[problem.Code(code.Name)]
			if of := group.Title == "Calls" || group.Title == "Processes and the database"; of && !decided && !slices.Contains(warnings, code.Name) {
				t.Errorf("%s has no status", code.Name)
			}
		}
	}
}
