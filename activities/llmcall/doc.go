// Package llmcall performs llm_call nodes with a model behind any server that speaks OpenAI's chat completions: OpenAI
// itself, OpenRouter, Ollama, vLLM and others.
//
//	executor, err := llmcall.New(llmcall.Config{
//		BaseURL: "https://openrouter.ai/api/v1",
//		APIKey: func(context.Context) (llmcall.Secret, error) {
//			return llmcall.NewSecret(os.Getenv("OPENROUTER_API_KEY")), nil
//		},
//	})
//	runner, err := graph.New(store, graph.Options{Activities: activities.Composite{LLMCall: executor}})
//
// Prompts are sent as written unless the node's metadata has "prompt_templates": true. An answer to a node with an
// output_schema is checked here; one that breaks it fails the attempt, and asks the engine for a repair: one more attempt,
// that sends the model its answer and the errors in it. The key is asked for at every attempt, goes to the
// configured host and nowhere else, and is taken out of every text that the executor returns.
//
// Agents ask the same models through Chat: conversations with tools, streamed or not. At makes an executor of another endpoint.
//
// A node may list models: the next one is asked where the one before fails as in an outage. Otherwise an executor repeats no request that
// failed: whether to try again, and when, is the choice of the node's or the agent's retry policy, which the failures advise.
package llmcall
