package agentdemo

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
)

// Reply is a scripted reply: a text, or calls of tools.
type Reply struct {
	// When selects conversations that contain the text; "" selects all. The first matching reply is used.
	When string `json:"when,omitempty"`
	// Once is for replies that are given once.
	Once  bool   `json:"-"`
	Text  string `json:"text,omitempty"`
	Calls []Call `json:"calls,omitempty"`
}

// Call is a call of a tool.
type Call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

// endpoint is where agents ask: the user's, or one of this program that plays scripts.
type endpoint struct {
	// config is the value of WORKFLOW_ENGINE_LLM_CONFIG.
	config, model, said string
	own                 bool // the user's
	stop                func()

	mu     sync.Mutex
	script []Reply
	asked  int
	// strike is called at the request of this number.
	number int
	strike func()
}

// keyVariable holds the key of the program's own endpoint.
const keyVariable = "AGENT_DEMO_MODEL_KEY"

func openEndpoint() (*endpoint, error) {
	e := &endpoint{stop: func() {}, model: "small-and-fast"}
	base, key := os.Getenv("OPENAI_BASE_URL"), os.Getenv("OPENAI_API_KEY")
	settings := map[string]any{}
	if e.own = base != "" || key != ""; e.own {
		e.model = cmp.Or(os.Getenv("OPENAI_MODEL"), "gpt-4.1-mini")
		base = cmp.Or(base, "https://api.openai.com/v1")
		e.said = e.model + " at " + base
		if settings["apiKeyEnv"] = "OPENAI_API_KEY"; key == "" {
			settings = map[string]any{"noAuth": true}
		}
	} else {
		ownKey := rand.Text()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		server := &http.Server{Handler: e.handler(ownKey)}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = server.Serve(listener) // it ends with stop
		}()
		e.stop = func() { _ = server.Close(); <-ended }
		if err := os.Setenv(keyVariable, ownKey); err != nil {
			return nil, err
		}
		base, settings["apiKeyEnv"] = fmt.Sprintf("http://%s/v1", listener.Addr()), keyVariable
		e.said = fmt.Sprintf("a script, as chat completions at %s, served by this program", base)
	}
	settings["baseUrl"] = base
	config, err := json.Marshal(settings)
	e.config = string(config)
	return e, err
}

// name is the name of the model as JSON.
func (e *endpoint) name() []byte {
	text, _ := json.Marshal(e.model) // of a text
	return text
}

// play begins a script.
func (e *endpoint) play(script []Reply) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.script, e.asked = append([]Reply(nil), script...), 0
}

// at has a function called at a request, in place of an answer to it.
func (e *endpoint) at(number int, strike func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.number, e.strike = number, strike
}

// next returns the reply to a conversation; false if this request is not answered.
func (e *endpoint) next(body string) (reply Reply, number int, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked++; e.strike != nil && e.asked == e.number {
		e.strike()
		return Reply{}, e.asked, false
	}
	for i, r := range e.script {
		if strings.Contains(body, r.When) {
			if r.Once {
				e.script = append(e.script[:i], e.script[i+1:]...)
			}
			return r, e.asked, true
		}
	}
	return Reply{Text: "The script has no more to say."}, e.asked, true
}

// handler serves the part of chat completions that agents use.
func (e *endpoint) handler(key string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 8<<20))
		if err != nil || r.Header.Get("Authorization") != "Bearer "+key {
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": "this key is not mine"}})
			return
		}
		reply, number, ok := e.next(string(body))
		if !ok {
			<-r.Context().Done() // whoever asks is gone
			return
		}
		message := map[string]any{"role": "assistant", "content": reply.Text}
		finish := "stop"
		var calls []any
		for i, c := range reply.Calls {
			arguments, _ := json.Marshal(c.Arguments) // of a script
			calls = append(calls, map[string]any{
				"id": fmt.Sprintf("call_%d_%d", number, i+1), "type": "function", "function": map[string]any{"name": c.Name, "arguments": string(arguments)},
			})
			finish = "tool_calls"
		}
		if calls != nil {
			message["tool_calls"] = calls
		}
		read, written := len(body)/4, len(reply.Text)/4+20*len(calls)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "chatcmpl-1", "object": "chat.completion", "model": "script",
			"choices": []any{map[string]any{"index": 0, "finish_reason": finish, "message": message}},
			"usage":   map[string]any{"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
		})
	})
	return mux
}
