// Package llmcall performs llm_call nodes with any chat.Model, by default with a server that speaks OpenAI's chat completions (package
// openaichat):
//
//	executor, err := llmcall.New(llmcall.Config{
//		BaseURL: "https://openrouter.ai/api/v1",
//		APIKey: func(context.Context) (llmcall.Secret, error) {
//			return llmcall.NewSecret(os.Getenv("OPENROUTER_API_KEY")), nil
//		},
//	})
//	runner, err := graph.New(store, graph.Options{Activities: activities.Composite{LLMCall: executor}})
//
// Prompts are sent as written unless the node's metadata has "prompt_templates": true. The answer to a node with an output_schema is checked
// here. An invalid answer fails the attempt and asks the engine for a repair: one more attempt, which sends the model its answer and the
// errors in it.
//
// A node may list models: if a model fails as in an outage, the next one is asked. An executor does not repeat failed requests otherwise: the
// node's retry policy does, as the failures advise.
package llmcall
