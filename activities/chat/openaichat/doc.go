// Package openaichat implements chat.Model for servers that speak OpenAI's chat completions: OpenAI itself, OpenRouter, Ollama, vLLM and
// others.
//
//	model, err := openaichat.New(openaichat.Config{
//		BaseURL: "https://openrouter.ai/api/v1",
//		APIKey: func(context.Context) (chat.Secret, error) {
//			return chat.NewSecret(os.Getenv("OPENROUTER_API_KEY")), nil
//		},
//	})
//
// The key goes to the configured host and nowhere else, and is removed from every text that the model returns.
//
// Library go-openai makes the requests. Answers are read here, whole and streamed (exchange): the library rejects forms that servers use,
// such as numbers as ids and content in parts, and its reader of streams loses an error that follows a comment.
package openaichat
