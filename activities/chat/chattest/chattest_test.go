package chattest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	failed []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failed = append(r.failed, fmt.Sprintf(format, args...))
}

// ask posts a conversation with one user message.
func ask(t *testing.T, s *chattest.Server, body string) (int, string) {
	t.Helper()
	resp, err := s.Client().Post(s.URL+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err.Error()
	}
	return resp.StatusCode, string(answer)
}

func says(text string) string {
	return `{"model":"m","messages":[{"role":"user","content":"` + text + `"}]}`
}

func TestScript(t *testing.T) {
	t.Parallel()
	s := chattest.Serve(
		t, chattest.Reply{When: "Paris", Text: "P"}, chattest.Fail(429, "slow down", "Retry-After", "7"),
		chattest.Calls(chattest.Call("read", "{}")), chattest.Reply{Text: "half of it", Break: true},
	)
	for i, want := range []struct {
		ask, answer string
		status      int
	}{{"Rome", "slow down", 429}, {"Rome", `"id":"c2.1"`, 200}, {"Paris", `"content":"P"`, 200}, {"Rome", "EOF", 0}} {
		if status, answer := ask(t, s, says(want.ask)); status != want.status && want.status != 0 || !strings.Contains(answer, want.answer) {
			t.Errorf("request %d: %d %s", i+1, status, answer)
		}
	}
	s.Then(chattest.Reply{Always: true, Text: "again"})
	for range 2 {
		if _, answer := ask(t, s, says("x")); !strings.Contains(answer, "again") {
			t.Error(answer)
		}
	}
	if asked := s.Asked(); len(asked) != 6 || asked[2].Messages[0].Text != "Paris" || asked[2].Number != 3 || s.Left() != 1 {
		t.Errorf("asked %+v, %d left", asked, s.Left())
	}
	s.Play(chattest.Text("anew"))
	if _, answer := ask(t, s, says("x")); !strings.Contains(answer, "anew") || len(s.Asked()) != 1 || s.Left() != 0 {
		t.Errorf("%s, asked %d times, %d left", answer, len(s.Asked()), s.Left())
	}
}

// TestStreamed: the usage is sent only if the request asks for it.
func TestStreamed(t *testing.T) {
	t.Parallel()
	for _, wanted := range []bool{false, true} {
		s := chattest.Serve(t, chattest.Reply{Text: "Hello, world", Calls: []chat.Call{chattest.Call("read", `{"path":"a"}`)}})
		_, answer := ask(t, s, fmt.Sprintf(`{"model":"m","stream":true,"stream_options":{"include_usage":%v},"messages":[{"role":"user","content":"x"}]}`, wanted))
		var said strings.Builder
		for line := range strings.Lines(answer) {
			var chunk struct {
				Choices []struct{ Delta struct{ Content string } }
			}
			if data, ok := strings.CutPrefix(line, "data: {"); ok {
				if err := json.Unmarshal([]byte("{"+data), &chunk); err != nil {
					t.Fatal(err)
				}
			}
			for _, c := range chunk.Choices {
				said.WriteString(c.Delta.Content)
			}
		}
		if said.String() != "Hello, world" || !strings.HasSuffix(answer, "data: [DONE]\n\n") || strings.Contains(answer, `"prompt_tokens":100`) != wanted {
			t.Errorf("streamed %s", answer)
		}
	}
}

// TestFaults: a request that strict providers reject fails the test, and so does a request without a reply.
func TestFaults(t *testing.T) {
	t.Parallel()
	const called = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	for _, tt := range []struct{ body, want string }{
		{says("x"), "no reply to request 1"},
		{"{", "not a request"},
		{`{"model":"m"}`, "the messages are missing"},
		{`{"model":"m","messages":[{"role":"user"}]}`, "no content"},
		{`{"model":"m","messages":[{"role":"owner","content":"x"}]}`, "unknown role"},
		{`{"model":"m","messages":[` + called + `]}`, "ends before the results"},
		{`{"model":"m","messages":[` + called + `,{"role":"user","content":"x"}]}`, "before the results"},
		{`{"model":"m","messages":[` + called + `,{"role":"tool","tool_call_id":"b","content":"x"}]}`, "no open call: b"},
		{`{"model":"m","messages":[` + strings.Replace(called, "{}", "[]", 1) + `]}`, "not an object"},
		{`{"model":"m","messages":[` + strings.Replace(called, `"f"`, `"f.g"`, 1) + `]}`, "duplicate id or name"},
		{`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}]}`, "parameters"},
	} {
		r := &recorder{TB: t}
		status, _ := ask(t, chattest.Serve(r, chattest.Reply{When: "nowhere"}), tt.body)
		if status != http.StatusBadRequest || len(r.failed) != 1 || !strings.Contains(r.failed[0], tt.want) {
			t.Errorf("%s: %d, %q", tt.body, status, r.failed)
		}
	}
}

// TestTime: delays take no real time in a bubble.
func TestTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := chattest.ServeInMemory(t, chattest.Reply{Text: "late", Delay: time.Hour}, chattest.Reply{Hang: true})
		began := time.Now()
		if _, answer := ask(t, s, says("x")); !strings.Contains(answer, "late") || time.Since(began) != time.Hour {
			t.Errorf("%s after %v", answer, time.Since(began))
		}
		s.Client().Timeout = time.Minute
		if status, answer := ask(t, s, says("x")); status != 0 {
			t.Errorf("%d %s", status, answer)
		}
	})
}
