package llmcall_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// A workflow that asks a model; here a server with a fixed answer.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"model":"tiny","choices":[{"message":{"content":"{\"mood\":\"bright\"}"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	models, err := llmcall.New(llmcall.Config{
		BaseURL: server.URL,
		NoAuth:  true, // a server of one's own; others get an APIKey
	})
	if err != nil {
		panic(err)
	}
	doc, err := definition.ParseYAML([]byte(`
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: mood, version: 1.0.0}
state_schema: {type: object, properties: {letter: {type: string}, mood: {type: string}}}
nodes:
  - {id: start, type: start}
  - id: judge
    type: llm_call
    metadata: {prompt_templates: true}
    config:
      model: tiny
      user_prompt: "In one word, the mood of this letter: ${ .letter }"
      output_schema: {type: object, required: [mood], properties: {mood: {type: string}}}
  - {id: end, type: end, config: {output_mapping: .mood}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: judge}
  - {source: judge, target: end}
`))
	if err != nil {
		panic(err)
	}
	runner, err := graph.New(historymem.New(), graph.Options{Activities: activities.Composite{LLMCall: models}})
	if err != nil {
		panic(err)
	}
	defer func() { _ = runner.Close() }()
	run, err := runner.Start(context.Background(), graph.StartRequest{Definition: doc, Input: map[string]any{"letter": "What a day!"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Status, run.Result)
	// Output: completed bright
}

// A conversation with a model that may call a tool.
func ExampleExecutor_Chat() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"choices":[{"message":{"tool_calls":[{"id":"c1","type":"function",`+
			`"function":{"name":"weather","arguments":"{\"at\":\"Oslo\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":52,"completion_tokens":9}}`)
	}))
	defer server.Close()
	model, err := llmcall.New(llmcall.Config{BaseURL: server.URL, NoAuth: true})
	if err != nil {
		panic(err)
	}
	reply, err := model.Chat(context.Background(), chat.Request{
		Model: "tiny", Messages: []chat.Message{{Role: chat.User, Text: "Do I need an umbrella in Oslo?"}}, MaxTokens: 500,
		Tools: []chat.Tool{{Name: "weather", Parameters: map[string]any{
			"type": "object", "required": []any{"at"}, "properties": map[string]any{"at": map[string]any{"type": "string"}},
		}}},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(reply.Calls[0].Name, reply.Calls[0].Arguments, reply.Usage.Prompt, reply.Usage.Completion)
	// Output: weather {"at":"Oslo"} 52 9
}

// parrot repeats the last message.
type parrot struct{}

func (parrot) Chat(_ context.Context, req chat.Request) (chat.Reply, error) {
	return chat.Reply{Text: req.Messages[len(req.Messages)-1].Text}, nil
}

// An llm_call with a model of one's own.
func ExampleNew_model() {
	models, err := llmcall.New(llmcall.Config{Model: parrot{}})
	if err != nil {
		panic(err)
	}
	result, err := models.Execute(context.Background(), activities.Request{
		NodeID: "ask", NodeType: "llm_call", Config: map[string]any{"model": "any", "user_prompt": "Hello!"},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Output)
	// Output: map[text:Hello!]
}
