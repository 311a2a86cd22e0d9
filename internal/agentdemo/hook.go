package agentdemo

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// hook receives the webhooks of the run, as a program of the user would.
type hook struct {
	key string

	mu sync.Mutex
	// told are the events in order of arrival, seen their ids.
	told []string
	seen map[string]bool
}

// hookVariable holds the secret that signs.
const hookVariable = "AGENT_DEMO_HOOK_SECRET"

// openHook serves a receiver until stop is called, and sets it up as the target "office".
func openHook() (h *hook, stop func(), err error) {
	h = &hook{key: rand.Text(), seen: map[string]bool{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := &http.Server{Handler: h}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // it ends with stop
	}()
	stop = func() { _ = server.Close(); <-ended }
	settings, err := json.Marshal(map[string]any{
		"targets":         map[string]any{"office": map[string]any{"url": fmt.Sprintf("http://%s/hook", listener.Addr()), "secretRef": "env:" + hookVariable}},
		"privateNetworks": []string{"127.0.0.1"}, // this computer, which is refused otherwise
	})
	for name, value := range map[string]string{"WORKFLOW_ENGINE_WEBHOOKS": string(settings), hookVariable: h.key} {
		if err == nil {
			err = os.Setenv(name, value)
		}
	}
	if err != nil {
		stop()
	}
	return h, stop, err
}

// ServeHTTP takes a delivery, once.
func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	signed, _ := standardwebhooks.NewWebhookRaw([]byte(h.key)) // it fails for an empty key only
	if err != nil || signed.Verify(body, r.Header) != nil {
		http.Error(w, "the signature does not match", http.StatusUnauthorized)
		return
	}
	var said struct {
		Event string
		Run   struct{ Result any }
	}
	if err := json.Unmarshal(body, &said); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if id := r.Header.Get("webhook-id"); !h.seen[id] { // it may come again
		h.seen[id] = true
		text := said.Event
		if said.Run.Result != nil {
			result, _ := json.Marshal(said.Run.Result) // it was JSON
			text += " " + string(result)
		}
		h.told = append(h.told, text)
	}
}

// print prints the events after the end of the run, or after a timeout.
func (h *hook) print(w io.Writer, ends int) {
	for range 50 {
		h.mu.Lock()
		n := len(h.told)
		h.mu.Unlock()
		if n >= ends {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = fmt.Fprintln(w, "\nwhat the webhook got, signed:")
	for _, text := range h.told {
		_, _ = fmt.Fprintln(w, " ", text)
	}
}
