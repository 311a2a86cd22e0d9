package openaichat_test

import (
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/chat/openaichat"
)

// inPieces answers with a body in pieces of size bytes, each flushed.
func inPieces(contentType, body string, size int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for at := 0; at < len(body); at += size {
			_, _ = io.WriteString(w, body[at:min(at+size, len(body))])
			w.(http.Flusher).Flush()
		}
	}
}

// events returns a stream of server-sent events with these data.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		fmt.Fprintf(&b, "data: %s\n\n", d)
	}
	return b.String()
}

// TestProvidersAnswers: the same conversation step, two parallel calls after some thought, as five servers shape it, whole and streamed,
// and however the network cuts it.
func TestProvidersAnswers(t *testing.T) {
	t.Parallel()
	calls := func(ids ...string) []chat.Call {
		return []chat.Call{{ID: ids[0], Name: "weather", Arguments: `{"at":"Zürich"}`}, {ID: ids[1], Name: "weather", Arguments: `{"at":"Bern"}`}}
	}
	counted := chat.Usage{Prompt: 30, Cached: 20, Completion: 9}
	for name, c := range map[string]struct {
		whole, stream string
		streamType    string // "" for text/event-stream
		want          chat.Reply
		streamed      func(*chat.Reply) // what the streamed answer has otherwise
	}{
		"OpenAI": {
			whole: `{"id":"chatcmpl-1","object":"chat.completion","created":1741570283,"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":null,"annotations":[],
				"tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"at\":\"Zürich\"}"}},{"id":"call_2","type":"function","function":{"name":"weather","arguments":"{\"at\":\"Bern\"}"}}]},
				"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":30,"completion_tokens":9,"total_tokens":39,"prompt_tokens_details":{"cached_tokens":20,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}},"service_tier":"default","system_fingerprint":"fp_1"}`,
			stream: events(
				`{"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-4.1-2025-04-14","choices":[{"index":0,"delta":{"role":"assistant","content":null,"refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}`,
				`{"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"weather","arguments":""}}]},"finish_reason":null}],"usage":null}`,
				`{"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"at\":\"Zü"}}]},"finish_reason":null}],"usage":null}`,
				`{"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"rich\"}"}}]},"finish_reason":null}],"usage":null}`,
				`{"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"weather","arguments":"{\"at\":\"Bern\"}"}}]},"finish_reason":null}],"usage":null}`,
				`{"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}`,
				`{"model":"gpt-4.1-2025-04-14","choices":[],"usage":{"prompt_tokens":30,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":20}}}`, `[DONE]`,
			),
			want: chat.Reply{Model: "gpt-4.1-2025-04-14", Calls: calls("call_1", "call_2"), Finish: chat.FinishStop, Usage: counted},
		},
		"OpenRouter": {
			whole: `{"id":"gen-1","provider":"Fireworks","model":"deepseek/deepseek-r1","object":"chat.completion","choices":[{"logprobs":null,"finish_reason":"tool_calls","native_finish_reason":"tool_calls","index":0,
				"message":{"role":"assistant","content":"","refusal":null,"reasoning":"Two towns.","reasoning_details":[{"type":"reasoning.text","text":"Two towns."}],
				"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"at\":\"Zürich\"}"}},{"index":1,"id":"call_2","type":"function","function":{"name":"weather","arguments":"{\"at\":\"Bern\"}"}}]}}],
				"usage":{"prompt_tokens":30,"completion_tokens":9,"total_tokens":39,"cost":0.00014,"prompt_tokens_details":{"cached_tokens":20}}}`,
			stream: ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + events(
				`{"id":"gen-1","provider":"Fireworks","model":"deepseek/deepseek-r1","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"Two "},"finish_reason":null,"native_finish_reason":null}]}`,
				`{"model":"deepseek/deepseek-r1","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"towns."},"finish_reason":null}]}`,
				`{"model":"deepseek/deepseek-r1","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"at\":"}}]},"finish_reason":null}]}`,
				`{"model":"deepseek/deepseek-r1","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"type":"function","function":{"name":null,"arguments":"\"Zürich\"}"}}]},"finish_reason":null}]}`,
				`{"model":"deepseek/deepseek-r1","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"weather","arguments":"{\"at\":\"Bern\"}"}}]},"finish_reason":"tool_calls","native_finish_reason":"tool_calls"}]}`,
				`{"model":"deepseek/deepseek-r1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":{"prompt_tokens":30,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":20}}}`, `[DONE]`,
			),
			want: chat.Reply{Model: "deepseek/deepseek-r1", Reasoning: "Two towns.", Calls: calls("call_1", "call_2"), Finish: chat.FinishStop, Usage: counted},
		},
		"Ollama": { // whole calls in one piece, and no cached tokens
			whole: `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"qwen3:8b","system_fingerprint":"fp_ollama","choices":[{"index":0,"message":{"role":"assistant","content":"","reasoning":"Two towns.",
				"tool_calls":[{"id":"call_abc","index":0,"type":"function","function":{"name":"weather","arguments":"{\"at\":\"Zürich\"}"}},{"id":"call_def","index":0,"type":"function","function":{"name":"weather","arguments":"{\"at\":\"Bern\"}"}}]},
				"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":30,"completion_tokens":9,"total_tokens":39}}`,
			stream: events(
				`{"model":"qwen3:8b","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"Two towns."},"finish_reason":null}]}`,
				`{"model":"qwen3:8b","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_abc","index":0,"type":"function","function":{"name":"weather","arguments":"{\"at\":\"Zürich\"}"}}]},"finish_reason":null}]}`,
				`{"model":"qwen3:8b","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_def","index":0,"type":"function","function":{"name":"weather","arguments":"{\"at\":\"Bern\"}"}}]},"finish_reason":null}]}`,
				`{"model":"qwen3:8b","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"tool_calls"}]}`,
				`{"model":"qwen3:8b","choices":[],"usage":{"prompt_tokens":30,"completion_tokens":9,"total_tokens":39}}`, `[DONE]`,
			),
			want: chat.Reply{Model: "qwen3:8b", Reasoning: "Two towns.", Calls: calls("call_abc", "call_def"), Finish: chat.FinishStop, Usage: chat.Usage{Prompt: 30, Completion: 9}},
		},
		"vLLM": { // reasoning_content, and a text beside the calls
			whole: `{"id":"chatcmpl-1","object":"chat.completion","model":"Qwen/Qwen3-8B","choices":[{"index":0,"message":{"role":"assistant","reasoning_content":"Two towns.","content":"Let me look.",
				"tool_calls":[{"id":"chatcmpl-tool-1","type":"function","function":{"name":"weather","arguments":"{\"at\":\"Zürich\"}"}},{"id":"chatcmpl-tool-2","type":"function","function":{"name":"weather","arguments":"{\"at\":\"Bern\"}"}}]},
				"logprobs":null,"finish_reason":"tool_calls","stop_reason":null}],"usage":{"prompt_tokens":30,"total_tokens":39,"completion_tokens":9,"prompt_tokens_details":null},"prompt_logprobs":null,"kv_transfer_params":null}`,
			stream: events(
				`{"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`,
				`{"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"reasoning_content":"Two towns."},"logprobs":null,"finish_reason":null}]}`,
				`{"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"content":"Let me look."},"logprobs":null,"finish_reason":null}]}`,
				`{"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"tool_calls":[{"id":"chatcmpl-tool-1","type":"function","index":0,"function":{"name":"weather"}}]},"finish_reason":null}]}`,
				`{"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"at\": \"Zürich\"}"}}]},"finish_reason":null}]}`,
				`{"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"tool_calls":[{"id":"chatcmpl-tool-2","type":"function","index":1,"function":{"name":"weather"}}]},"finish_reason":null}]}`,
				`{"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"at\":\"Bern\"}"}}]},"finish_reason":"tool_calls","stop_reason":null}]}`,
				`{"model":"Qwen/Qwen3-8B","choices":[],"usage":{"prompt_tokens":30,"total_tokens":39,"completion_tokens":9}}`, `[DONE]`,
			),
			want:     chat.Reply{Model: "Qwen/Qwen3-8B", Text: "Let me look.", Reasoning: "Two towns.", Calls: calls("chatcmpl-tool-1", "chatcmpl-tool-2"), Finish: chat.FinishStop, Usage: chat.Usage{Prompt: 30, Completion: 9}},
			streamed: func(r *chat.Reply) { r.Calls[0].Arguments = `{"at": "Zürich"}` },
		},
		"llama.cpp": { // ids that are empty, one that two calls share; the model's name is a file; usage in the last piece of the stream
			whole: `{"choices":[{"finish_reason":"tool","index":0,"message":{"role":"assistant","content":null,"reasoning_content":"Two towns.",
				"tool_calls":[{"type":"function","function":{"name":"weather","arguments":{"at":"Zürich"}},"id":""},{"type":"function","function":{"name":"weather","arguments":"{\"at\":\"Bern\"}"},"id":""}]}}],
				"created":1741570283,"model":"gguf/qwen.gguf","object":"chat.completion","usage":{"completion_tokens":9,"prompt_tokens":30,"total_tokens":39},"timings":{"prompt_n":30,"predicted_ms":12.5}}`,
			stream: events(
				`{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"model":"gguf/qwen.gguf","object":"chat.completion.chunk"}`,
				`{"choices":[{"finish_reason":null,"index":0,"delta":{"reasoning_content":"Two towns."}}],"model":"gguf/qwen.gguf"}`,
				`{"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"id":"","type":"function","function":{"name":"weather","arguments":"{"}}]}}],"model":"gguf/qwen.gguf"}`,
				`{"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"at\":\"Zürich\"}"}}]}}],"model":"gguf/qwen.gguf"}`,
				`{"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":1,"id":"","type":"function","function":{"name":"weather","arguments":"{\"at\":\"Bern\"}"}}]}}],"model":"gguf/qwen.gguf"}`,
				`{"choices":[{"finish_reason":"tool_calls","index":0,"delta":{}}],"model":"gguf/qwen.gguf","usage":{"completion_tokens":9,"prompt_tokens":30,"total_tokens":39},"timings":{"prompt_n":30}}`, `[DONE]`,
			),
			want: chat.Reply{Model: "gguf/qwen.gguf", Reasoning: "Two towns.", Calls: calls("call_1", "call_2"), Finish: chat.FinishStop, Usage: chat.Usage{Prompt: 30, Completion: 9}},
		},
		"a server that cannot stream": { // it answers whole
			whole:      `{"model":"m","choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"weather","arguments":"{\"at\":\"Zürich\"}"}},{"id":"b","function":{"name":"weather","arguments":"{\"at\":\"Bern\"}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":30,"completion_tokens":9}}`,
			stream:     `{"model":"m","choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"weather","arguments":"{\"at\":\"Zürich\"}"}},{"id":"b","function":{"name":"weather","arguments":"{\"at\":\"Bern\"}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":30,"completion_tokens":9}}`,
			streamType: "application/json; charset=utf-8",
			want:       chat.Reply{Model: "m", Calls: calls("a", "b"), Finish: chat.FinishStop, Usage: chat.Usage{Prompt: 30, Completion: 9}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ways(t, func(t *testing.T, req chat.Request) {
				want, body, kind := c.want, c.whole, "application/json"
				if req.Stream {
					body, kind = c.stream, "text/event-stream"
					if c.streamType != "" {
						kind = c.streamType
					}
					if c.streamed != nil {
						want.Calls = append([]chat.Call(nil), want.Calls...)
						c.streamed(&want)
					}
				}
				for _, size := range []int{1 << 20, 1, 7} {
					got, err := newModel(t, openaichat.Config{BaseURL: newProvider(t, inPieces(kind, body, size)).URL}).Chat(t.Context(), req)
					if err != nil || !reflect.DeepEqual(got, want) {
						t.Errorf("in pieces of %d bytes:\ngot  %+v, %v\nwant %+v", size, got, err, want)
					}
				}
			})
		})
	}
}
