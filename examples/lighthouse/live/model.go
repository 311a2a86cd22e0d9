package main

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
)

// model is the endpoint that answers llm_call nodes.
type model struct {
	// config is the value of WORKFLOW_ENGINE_LLM_CONFIG.
	config string
	// name replaces the name in the definition, unless it is "".
	name string
	said string
}

// modelEndpoint returns the user's endpoint, or serves one of its own until stop is called.
func modelEndpoint() (m model, stop func(), err error) {
	base, key := os.Getenv("OPENAI_BASE_URL"), os.Getenv("OPENAI_API_KEY")
	settings := map[string]any{"apiKeyEnv": "OPENAI_API_KEY"}
	if base != "" || key != "" {
		m.name = cmp.Or(os.Getenv("OPENAI_MODEL"), "gpt-4.1-mini")
		m.said = fmt.Sprintf("%s at %s", m.name, cmp.Or(base, "https://api.openai.com/v1"))
		if base != "" {
			settings["baseUrl"] = base
		}
		if key == "" {
			settings = map[string]any{"baseUrl": base, "noAuth": true}
		}
		stop = func() {}
	} else {
		const variable = "LIGHTHOUSE_MODEL_KEY"
		ownKey := rand.Text()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return m, nil, err
		}
		server := &http.Server{Handler: chatCompletions(ownKey)}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = server.Serve(listener) // it ends with stop
		}()
		stop = func() { server.Close(); <-ended }
		if err := os.Setenv(variable, ownKey); err != nil {
			stop()
			return m, nil, err
		}
		settings = map[string]any{"baseUrl": fmt.Sprintf("http://%s/v1", listener.Addr()), "apiKeyEnv": variable}
		m.said = fmt.Sprintf("scripted (fixed rules), as chat completions at %s, served by this program", settings["baseUrl"])
	}
	config, err := json.Marshal(settings)
	if err != nil {
		stop()
		return m, nil, err
	}
	m.config = string(config)
	return m, stop, nil
}

// chatCompletions serves the part of OpenAI's chat completions that an llm_call uses. Its answers depend on the
// words of the ticket.
func chatCompletions(key string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			refuse(w, http.StatusUnauthorized, "invalid_api_key", "this key is not mine")
			return
		}
		var request struct {
			Model    string
			Messages []struct{ Role, Content string }
			Format   struct{ Type string } `json:"response_format"`
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&request); err != nil || len(request.Messages) == 0 {
			refuse(w, http.StatusBadRequest, "invalid_request_error", "the body is not a chat completion request")
			return
		}
		var state struct {
			Ticket string `json:"ticket_text"`
		}
		prompt := request.Messages[len(request.Messages)-1].Content
		if json.Unmarshal([]byte(prompt), &state) != nil {
			state.Ticket = prompt
		}
		content := summarize(state.Ticket)
		if strings.HasPrefix(request.Format.Type, "json") {
			answer, err := json.Marshal(classify(state.Ticket))
			if err != nil {
				refuse(w, http.StatusInternalServerError, "server_error", err.Error())
				return
			}
			content = string(answer)
		}
		read := 0
		for _, m := range request.Messages {
			read += tokens(m.Content)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "chatcmpl-1", "object": "chat.completion", "model": request.Model + "-local",
			"choices": []any{map[string]any{
				"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": content},
			}},
			"usage": map[string]any{
				"prompt_tokens": read, "completion_tokens": tokens(content), "total_tokens": read + tokens(content),
			},
		})
	})
	return mux
}

// refuse answers as OpenAI does where it refuses.
func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"type": kind, "message": message}})
}

// classification matches the definition's output_schema.
type classification struct {
	Intent     string  `json:"intent"`
	Confidence float64 `json:"confidence"`
	Summary    string  `json:"summary"`
}

// classify counts words. If a text mentions both subjects, or neither, the classification is unsure, and the workflow asks a person.
func classify(ticket string) classification {
	text := strings.ToLower(ticket)
	mentions := func(words ...string) (n int) {
		for _, word := range words {
			if strings.Contains(text, word) {
				n++
			}
		}
		return n
	}
	billing := mentions("invoice", "charge", "refund", "payment", "paid", "price", "bill")
	technical := mentions("error", "crash", "sync", "slow", "broken", "does not work", "log in", "login", "bug")
	c := classification{Intent: "other", Confidence: 0.5, Summary: summarize(ticket)}
	switch {
	case billing > technical:
		c.Intent, c.Confidence = "billing", sure(billing, technical)
	case technical > 0:
		c.Intent, c.Confidence = "technical", sure(technical, billing)
	}
	return c
}

func sure(most, least int) float64 {
	if least > 0 {
		return 0.6
	}
	return min(0.85+0.05*float64(most), 0.99)
}

// summarize returns the first twelve words.
func summarize(ticket string) string {
	words := strings.Fields(ticket)
	return strings.Join(words[:min(len(words), 12)], " ")
}

// tokens estimates the tokens of a text.
func tokens(text string) int { return (len(text) + 3) / 4 }
