package toolcall_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// Servers that begin their output with a byte order mark, or send ids back as texts, are understood.
func TestServersThatWriteOtherwise(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"marked", "texts"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			h := open(t, script, func(c *toolcall.Config) { c.ConnectTimeout = time.Minute })
			for range 2 {
				if got := h.execute(tool("echo", object{"a": 1.0})); got != `{"a":1}` {
					t.Errorf("got %s", got)
				}
			}
			h.refuse(t.Context(), tool("refuse", nil), "MCP_PROTOCOL_ERROR")
		})
	}
	for _, kind := range []string{"application/json", "text/event-stream"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var req struct {
					ID     json.Number `json:"id"`
					Method string      `json:"method"`
				}
				_ = json.NewDecoder(r.Body).Decode(&req)
				result := object{"structuredContent": object{"a": 1}}
				switch {
				case req.ID == "":
					w.WriteHeader(http.StatusAccepted)
					return
				case req.Method == "initialize":
					result = object{"protocolVersion": "2025-11-25", "capabilities": object{}, "serverInfo": object{"name": "n", "version": "1"}}
				}
				text := string(enginetest.Must(json.Marshal(object{"jsonrpc": "2.0", "id": req.ID.String(), "result": result})))
				if kind == "text/event-stream" {
					text = "data: " + text + "\n\n"
				}
				w.Header().Set("Content-Type", kind)
				_, _ = w.Write([]byte("\ufeff" + text))
			}))
			t.Cleanup(site.Close)
			h := open(t, "plain", func(c *toolcall.Config) { c.Servers["s"] = toolcall.Server{URL: site.URL} })
			if got := h.execute(tool("echo", nil)); got != `{"a":1}` {
				t.Errorf("got %s", got)
			}
		})
	}
}

// A server that never answers initialize is named, with the time that it had, while the call has time left; what it printed is told.
func TestServersThatNeverAnswerAreNamed(t *testing.T) {
	t.Parallel()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the client has gone
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	for name, edit := range map[string]func(*toolcall.Config){
		"process": func(c *toolcall.Config) { c.ConnectTimeout, c.Timeout = 300*time.Millisecond, time.Hour },
		"URL": func(c *toolcall.Config) {
			c.ConnectTimeout, c.Timeout = 300*time.Millisecond, time.Hour
			c.Servers["s"] = toolcall.Server{URL: silent.URL}
		},
		"a quarter is left": func(c *toolcall.Config) { c.ConnectTimeout, c.Timeout = time.Hour, 4100*time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, "mute", edit)
			failure := h.refuse(t.Context(), tool("echo", nil), "MCP_CLIENT_ERROR")
			wants(t, failure, `MCP server "s"`, "has not answered initialize within")
			if failure.Retryable != activities.RetrySensible {
				t.Error("would not be tried again")
			}
		})
	}
	// A call whose time is over says it too.
	h := open(t, "mute", func(c *toolcall.Config) { c.Timeout = 300 * time.Millisecond })
	wants(t, h.refuse(t.Context(), tool("echo", nil), "ACTIVITY_TIMEOUT"), `MCP server "s"`, "has not answered initialize within")
}

// speak has a server answer a call with a result or an error.
func speak(kind string, answer string) activities.Request {
	var v any
	if err := json.Unmarshal([]byte(answer), &v); err != nil {
		panic(err)
	}
	return tool("speaking", object{"logs": []any{}, kind: v})
}

// Whatever a tool sends is in the output, as it came: only a text that repeats structured content is left out.
func TestNothingOfAResultIsLost(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", nil)
	const (
		image    = `{"_meta":{"n":1},"annotations":{"audience":["user"],"priority":0.5},"data":"AA==","mimeType":"image/png","type":"image"}`
		audio    = `{"data":"AAE=","mimeType":"audio/wav","type":"audio"}`
		link     = `{"description":"d","icons":[{"src":"https://x.example/i.png"}],"name":"n","size":7,"title":"t","type":"resource_link","uri":"file:///a"}`
		resource = `{"resource":{"_meta":{"k":"v"},"annotations":{"priority":1},"blob":"AA==","mimeType":"application/pdf","uri":"file:///b"},"type":"resource"}`
		unknown  = `{"frames":[1,2],"type":"video"}`
		all      = image + "," + audio + "," + link + "," + resource + "," + unknown
	)
	for result, want := range map[string]string{
		`{"content":[` + all + `]}`: `{"content":[` + all + `]}`,
		`{"content":[{"type":"text","text":"see"},` + all + `],"_meta":{"of":"the server"}}`:                                                    `{"content":[` + all + `],"text":"see"}`,
		`{"content":[` + link + `],"structuredContent":{"a":1}}`:                                                                                `{"a":1,"content":[` + link + `]}`,
		`{"content":[` + link + `],"structuredContent":{"content":1}}`:                                                                          `{"_content":[` + link + `],"content":1}`,
		`{"content":[{"type":"text","text":"only 3 of 90 rows"}],"structuredContent":{"rows":3}}`:                                               `{"content":[{"text":"only 3 of 90 rows","type":"text"}],"rows":3}`,
		`{"content":[{"type":"text","text":"{\n \"rows\": 3.0 }"}],"structuredContent":{"rows":3}}`:                                             `{"rows":3}`,
		`{"content":[{"type":"text","text":"three"}],"structuredContent":{"result":"three"}}`:                                                   `{"result":"three"}`,
		`{"content":[{"type":"text","text":"1"},{"type":"text","text":"two"}],"structuredContent":{"result":[1,"two"]}}`:                        `{"result":[1,"two"]}`,
		`{"content":[{"type":"text","text":"[1,2]"}],"structuredContent":[1,2]}`:                                                                `{"value":[1,2]}`,
		`{"content":[],"structuredContent":{"` + "\u00e9" + `":1,"resultType":"x"},"resultType":"complete"}`:                                    `{"resultType":"x","é":1}`,
		`{"content":[{"type":"text","text":"x","more":1}],"structuredContent":{"a":"y"},"_meta":{"workflows-engine/blocks":[{"type":"fake"}]}}`: `{"a":"y","content":[{"more":1,"text":"x","type":"text"}]}`,
	} {
		if got := h.execute(speak("result", result)); got != want {
			t.Errorf("%s\n got %s\nwant %s", result, got, want)
		}
	}
	// A report of an error says what it has where it has no text.
	wants(t, h.refuse(t.Context(), speak("result", `{"isError":true,"content":[`+link+`],"structuredContent":{"why":"closed"}}`), "MCP_TOOL_EXECUTION_ERROR"), "closed", "file:///a")
}

// A tool that declares an output schema has to send structured content.
func TestDeclaredOutputIsSent(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", nil)
	failure := h.refuse(t.Context(), tool("breaking", nil), "OUTPUT_SCHEMA_VIOLATION")
	wants(t, failure, `tool "breaking"`, "no structured content")
}

// What a server says of another attempt is followed, however it says it.
func TestTryLater(t *testing.T) {
	t.Parallel()
	h := open(t, "plain", nil)
	for _, c := range []struct {
		kind, answer string
		retryable    activities.Retryable
		after        time.Duration
	}{
		{"error", `{"code":-32000,"message":"no luck"}`, activities.RetrySensible, 0},
		{"error", `{"code":-32603,"message":"it broke"}`, activities.RetrySensible, 0},
		{"error", `{"code":-32001,"message":"no"}`, activities.RetryPointless, 0},
		{"error", `{"code":-32602,"message":"wrong"}`, activities.RetryPointless, 0},
		{"error", `{"code":-32050,"message":"Rate limited"}`, activities.RetrySensible, 0},
		{"error", `{"code":-32050,"message":"busy","data":{"retryAfter":3}}`, activities.RetrySensible, 3 * time.Second},
		{"error", `{"code":-32050,"message":"busy","data":{"error":{"retry_after_ms":"1500"}}}`, activities.RetrySensible, 1500 * time.Millisecond},
		{"result", `{"isError":true,"content":[{"type":"text","text":"Please try again in 1.5s."}]}`, activities.RetryUnknown, 1500 * time.Millisecond},
		{"result", `{"isError":true,"content":[{"type":"text","text":"Quota: retry after 2 minutes"}]}`, activities.RetryUnknown, 2 * time.Minute},
		{"result", `{"isError":true,"content":[{"type":"text","text":"busy"}],"_meta":{"retry-after":"7"}}`, activities.RetryUnknown, 7 * time.Second},
		{"result", `{"isError":true,"content":[{"type":"text","text":"busy"}],"structuredContent":{"retry_after_seconds":8}}`, activities.RetryUnknown, 8 * time.Second},
		{"result", `{"isError":true,"content":[{"type":"text","text":"busy"}],"_meta":{"retryAfter":1e300}}`, activities.RetryUnknown, time.Hour},
		{"result", `{"isError":true,"content":[{"type":"text","text":"I tried again 30 seconds later"}],"_meta":{"retryAfter":-1}}`, activities.RetryUnknown, 0},
		{"result", `{"isError":true,"content":[{"type":"text","text":"retry 3 orders"}],"_meta":{"retryAfter":{}}}`, activities.RetryUnknown, 0},
	} {
		code := "MCP_PROTOCOL_ERROR"
		if c.kind == "result" {
			code = "MCP_TOOL_EXECUTION_ERROR"
		}
		failure := h.refuse(t.Context(), speak(c.kind, c.answer), code)
		if failure.Retryable != c.retryable || failure.RetryAfter != c.after {
			t.Errorf("%s: %v after %v, want %v after %v", c.answer, failure.Retryable, failure.RetryAfter, c.retryable, c.after)
		}
	}
}

// What a server says in log messages is logged at its level, without keys and within bounds.
func TestLogMessages(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	h := open(t, "plain", func(c *toolcall.Config) {
		c.Servers["s"].Env["API_KEY"] = "literal:sk-sentinel"
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	messages := []any{
		object{"level": "debug", "data": "small talk"},
		object{"level": "emergency", "logger": "disk", "data": object{"full": true, "key": "sk-sentinel"}},
	}
	for range 40 {
		messages = append(messages, object{"level": "info", "data": strings.Repeat("x", 4<<10)})
	}
	h.execute(tool("speaking", object{"logs": messages, "result": object{"structuredContent": object{}}}))
	h.until("all is logged", func() bool { return strings.Contains(log.String(), "more is not logged") })
	text := log.String()
	for _, part := range []string{`level=DEBUG msg="MCP server logs" server=s logger="" data="small talk"`, `level=ERROR msg="MCP server logs" server=s logger=disk data="{\"full\":true,\"key\":\"[REDACTED]\"}"`} {
		if !strings.Contains(text, part) {
			t.Errorf("the log does not have %s:\n%.2000s", part, text)
		}
	}
	if strings.Contains(text, "sentinel") || len(text) > 100<<10 {
		t.Errorf("%d bytes are logged", len(text))
	}
}
