package streamable_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/streamable"
)

// FuzzMessages: whatever a body is, it is refused with a JSON-RPC error, or passed on as a message that the SDK reads as the same one.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"error":1}`,
		"\ufeff {", "[", "", `{"jsonrpc":"2.0","id":"\ud800","method":"m"}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized","params":[]}`, strings.Repeat("[", 2000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		passed := false
		h := streamable.Handler(streamable.Options{MaxMessageBytes: 10_000}, func(_ http.ResponseWriter, r *http.Request, m *streamable.Message) {
			passed = true
			rest, err := io.ReadAll(r.Body)
			if err != nil || r.ContentLength != int64(len(rest)) {
				t.Fatalf("%d bytes, %v", r.ContentLength, err)
			}
			if m.Message == nil {
				return // a batch, which the SDK refuses or takes apart
			}
			read, err := jsonrpc.DecodeMessage(rest)
			if err != nil {
				t.Fatalf("%s: %v", rest, err)
			}
			was, isCall := m.Message.(*jsonrpc.Request)
			is, stillIs := read.(*jsonrpc.Request)
			if isCall != stillIs || isCall && (was.ID != is.ID || was.Method != is.Method) || len(m.Arguments) > 0 && len(rest) > len(body)-len(m.Arguments)+2000 {
				t.Errorf("%q became %s", body, rest)
			}
		})
		r := httptest.NewRequest("POST", "/mcp", bytes.NewReader(body))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if refused := w.Code >= 400; refused == passed || refused && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%q: %d %s", body, w.Code, w.Body)
		}
	})
}

// TestLargeMessagesAreReadAFewAtATime: a large message waits while as many are coming in as may, and a small one does not.
func TestLargeMessagesAreReadAFewAtATime(t *testing.T) {
	t.Parallel()
	h := streamable.Handler(streamable.Options{}, func(w http.ResponseWriter, _ *http.Request, _ *streamable.Message) {
		w.WriteHeader(http.StatusAccepted)
	})
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	post := func(body io.Reader) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", body)
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		return r
	}
	answered := make(chan int, streamable.MaxLargeReads+1)
	var senders []*io.PipeWriter
	for range streamable.MaxLargeReads {
		body, sender := io.Pipe()
		senders = append(senders, sender)
		go func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, post(body)) // of which nobody knows the length
			answered <- w.Code
		}()
		if _, err := sender.Write([]byte(" ")); err != nil { // until it is being read
			t.Fatal(err)
		}
	}
	began := make(chan struct{})
	go func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, post(io.MultiReader(readerFunc(func([]byte) (int, error) { close(began); return 0, io.EOF }), strings.NewReader(ping))))
		answered <- w.Code
	}()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, post(strings.NewReader(ping)))
	if w.Code != http.StatusAccepted {
		t.Errorf("a small message: %d %s", w.Code, w.Body)
	}
	select {
	case <-began:
		t.Error("one more is read")
	default:
	}
	for _, sender := range senders {
		if _, err := sender.Write([]byte(ping)); err != nil {
			t.Fatal(err)
		}
		sender.Close()
	}
	<-began
	for range streamable.MaxLargeReads + 1 {
		if code := <-answered; code != http.StatusAccepted {
			t.Errorf("answered %d", code)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
