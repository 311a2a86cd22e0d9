package llmcall_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// script is a chat.Model that gives its answers in order, and keeps the requests. It ignores the Meter unless metered is set.
type script struct {
	answers []func(req chat.Request) (chat.Reply, error)
	metered bool
	asked   []chat.Request
}

func (s *script) Chat(_ context.Context, req chat.Request) (chat.Reply, error) {
	s.asked = append(s.asked, req)
	answer := s.answers[0]
	s.answers = s.answers[1:]
	if s.metered {
		req.Meter.Requests += 2
		req.Meter.Usage = map[string]any{"model": req.Model + "-1", "finish_reason": "eos", "total_tokens": 9}
	}
	return answer(req)
}

func replies(r chat.Reply) func(chat.Request) (chat.Reply, error) {
	return func(chat.Request) (chat.Reply, error) { return r, nil }
}

func fails(f activities.Failure) func(chat.Request) (chat.Reply, error) {
	return func(chat.Request) (chat.Reply, error) { return chat.Reply{}, &f }
}

func over(t *testing.T, s *script) *llmcall.Executor {
	t.Helper()
	e, err := llmcall.New(llmcall.Config{Model: s, Now: func() time.Time { return time.Unix(0, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestAnyModel: the executor gives every setting of a node to the model, and records the usage of its reply.
func TestAnyModel(t *testing.T) {
	t.Parallel()
	var beats []any
	s := &script{answers: []func(chat.Request) (chat.Reply, error){func(req chat.Request) (chat.Reply, error) {
		req.OnProgress(5)
		return chat.Reply{Model: "m-1", Text: `{"n":1}`, Usage: chat.Usage{Prompt: 3, Cached: 2, Completion: 4}}, nil
	}}}
	req := request(object{
		"system_prompt": "S", "temperature": 0.5, "top_p": 0.25, "max_tokens": 20.0, "seed": 7.0, "stop": "END", "stream": true, "output_schema": schema(),
	})
	req.Heartbeat = func(details map[string]any) { beats = append(beats, details) }
	e := over(t, s)
	got, err := e.Execute(t.Context(), req)
	if err != nil || text(t, got.Output) != `{"n":1}` {
		t.Fatalf("%v, %v", got.Output, err)
	}
	const usage = `{"cached_tokens":2,"completion_tokens":4,"duration_ms":0,"finish_reason":"stop","model":"m-1","prompt_tokens":3,"requests":1,"total_tokens":7}`
	if text(t, got.Usage) != usage {
		t.Errorf("usage %s\nwant  %s", text(t, got.Usage), usage)
	}
	if text(t, beats) != `[{"received_bytes":5}]` {
		t.Errorf("heartbeats %s", text(t, beats))
	}
	const want = `{"model":"m","messages":[{"role":"system","text":"S"},{"role":"user","text":"U"}],"max_tokens":20,"temperature":0.5,"top_p":0.25,"seed":7,` +
		`"stop":["END"],"schema":{"properties":{"n":{"type":"number"}},"required":["n"],"type":"object"},"schema_name":"ask me"}`
	if asked := s.asked[0]; text(t, asked) != want || !asked.Stream || asked.Key != "ex:ask me#1.1" {
		t.Errorf("asked %s\nwant  %s", text(t, asked), want)
	}
	can := e.Capabilities(req.Node())
	const described = `{"max_tokens":20,"messages":[{"role":"system","text":"S"},{"role":"user","text":"U"}],"model":"m","seed":7,"stop":["END"],"stream":true,` +
		`"temperature":0.5,"top_p":0.25}`
	if d := text(t, can.Describe(req)); d != described || len(can.Classes) != 0 {
		t.Errorf("classes %v, described %s\nwant %s", can.Classes, d, described)
	}
	if d := can.Describe(request(object{"user_prompt": nil, "system_prompt": "S"})); text(t, d) != `{"messages":[{"role":"system","text":"S"},{"content_from":"state","role":"user"}],"model":"m"}` {
		t.Errorf("described %s", text(t, d))
	}
}

// TestAMeteredModel: a list of models shares one meter, so that the model sees how many requests the attempt has sent.
func TestAMeteredModel(t *testing.T) {
	t.Parallel()
	s := &script{metered: true, answers: []func(chat.Request) (chat.Reply, error){
		fails(activities.Failure{Code: "LLM_PROVIDER_ERROR", Message: "boom", Data: object{"class": "down"}}),
		replies(chat.Reply{Text: "ok"}),
	}}
	got, err := over(t, s).Execute(t.Context(), request(object{"model": []any{"a", "b"}}))
	if err != nil || text(t, got.Usage) != `{"duration_ms":0,"finish_reason":"eos","model":"b-1","requests":4,"total_tokens":9}` {
		t.Errorf("usage %s, %v", text(t, got.Usage), err)
	}
	if len(s.asked) != 2 || s.asked[0].Meter != s.asked[1].Meter {
		t.Errorf("asked %+v", s.asked)
	}
}

// TestAnyModelIsRepaired: an invalid answer is sent back to the model with the error in it.
func TestAnyModelIsRepaired(t *testing.T) {
	t.Parallel()
	s := &script{answers: []func(chat.Request) (chat.Reply, error){replies(chat.Reply{Text: "seven"}), replies(chat.Reply{Text: `{"n":7}`})}}
	e := over(t, s)
	got, err := e.Execute(t.Context(), asked(t, e, request(object{"output_schema": schema()})))
	if err != nil || text(t, got.Output) != `{"n":7}` || got.Usage["repaired"] != true {
		t.Fatalf("%v, %v, %v", got.Output, got.Usage, err)
	}
	var roles []chat.Role
	for _, m := range s.asked[1].Messages {
		roles = append(roles, m.Role)
	}
	if !slices.Equal(roles, []chat.Role{chat.User, chat.Assistant, chat.User}) || s.asked[1].Messages[1].Text != "seven" {
		t.Errorf("asked %+v", s.asked[1].Messages)
	}
}

// TestFailuresOfAnyModel: failures of a model become failures of the attempt, with the codes that llm_call has.
func TestFailuresOfAnyModel(t *testing.T) {
	t.Parallel()
	plain := errors.New("no wire")
	for name, tt := range map[string]struct {
		answer  func(chat.Request) (chat.Reply, error)
		code    problem.Code
		message string
		usage   string
		cause   error
	}{
		"the conversation is too large": {fails(activities.Failure{Code: chat.CodeContextExceeded, Message: "too long"}), problem.LLMProviderError, "too long", "null", nil},
		"overloaded":                    {fails(activities.Failure{Code: "LLM_PROVIDER_ERROR", Message: "busy", Err: chat.ErrOverloaded}), problem.LLMProviderError, "busy", "null", nil},
		"settings":                      {fails(activities.Failure{Code: "LLM_CONFIG_INVALID", Message: "no seed"}), problem.LLMConfigInvalid, `llm_call "ask me": no seed`, "null", nil},
		"no key":                        {fails(activities.Failure{Code: "LLM_CREDENTIALS_MISSING", Message: "no key", Err: plain}), problem.LLMCredentialsMissing, "no key: no wire", "null", plain},
		"billed": {
			fails(activities.Failure{Code: "TIMEOUT", Message: "slow", Usage: object{"prompt_tokens": 3}}), problem.Timeout, "slow",
			`{"duration_ms":0,"prompt_tokens":3,"requests":1}`, nil,
		},
		"a tool call": {
			replies(chat.Reply{Calls: []chat.Call{{Name: "f"}}, Usage: chat.Usage{Prompt: 1, Completion: 1, Estimated: true}}), problem.LLMProviderError, `model "m": the model called a tool`,
			`{"completion_tokens":1,"duration_ms":0,"estimated":true,"finish_reason":"stop","model":"m","prompt_tokens":1,"requests":1,"total_tokens":2}`, nil,
		},
		"no text": {
			replies(chat.Reply{NoText: true, Finish: chat.FinishFilter}), problem.LLMProviderError, `no text as its content (finish_reason "content_filter")`,
			`{"duration_ms":0,"finish_reason":"content_filter","model":"m","requests":1}`, nil,
		},
		"cut off": {
			replies(chat.Reply{Text: "x", Finish: chat.FinishLength}), problem.LLMOutputInvalid, "raise config.max_tokens",
			`{"duration_ms":0,"finish_reason":"length","model":"m","requests":1}`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{answers: []func(chat.Request) (chat.Reply, error){tt.answer}}
			_, err := over(t, s).Execute(t.Context(), request(object{"output_schema": schema()}))
			f := wantFailure(t, err, tt.code, tt.message)
			if text(t, f.Usage) != tt.usage {
				t.Errorf("usage %s, want %s", text(t, f.Usage), tt.usage)
			}
			if !errors.Is(f.Err, tt.cause) || f.Repair != nil {
				t.Errorf("cause %v, repair %v", f.Err, f.Repair)
			}
		})
	}
	broken := func(chat.Request) (chat.Reply, error) { return chat.Reply{}, plain }
	s := &script{answers: []func(chat.Request) (chat.Reply, error){broken}}
	if _, err := over(t, s).Execute(t.Context(), request(object{"model": []any{"a", "b"}})); err != plain || len(s.asked) != 1 {
		t.Errorf("another error: %v after %d questions", err, len(s.asked))
	}
	s = &script{answers: []func(chat.Request) (chat.Reply, error){fails(activities.Failure{Code: "LLM_CREDENTIALS_MISSING", Data: object{"class": "credentials"}})}}
	_, err := over(t, s).Execute(t.Context(), request(object{"model": []any{"a", "b"}}))
	if wantFailure(t, err, problem.LLMCredentialsMissing, ""); len(s.asked) != 1 {
		t.Errorf("asked %d models with a key that is missing", len(s.asked))
	}
}

// TestModelOrServer: the settings of a server cannot go with a model.
func TestModelOrServer(t *testing.T) {
	t.Parallel()
	for _, c := range []llmcall.Config{{BaseURL: "http://models.invalid"}, {NoAuth: true}, {APIKey: keyed("k")}, {RequestTimeout: 1}, {MaxPromptBytes: -1}} {
		c.Model = &script{}
		if _, err := llmcall.New(c); !errors.Is(err, problem.LLMConfigInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
