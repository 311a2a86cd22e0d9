package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// fuzzedPeak is the most resident memory, in kB, that a fuzzed server may take.
const fuzzedPeak = 512 << 10

// TestFuzzedServer sends valid, changed and broken messages to real servers, over standard input and over HTTP. After each batch the
// server must be alive, answer a ping, and have logged no panic; in the end `verify` must find nothing in its database. Each batch has a
// seed, which a failure names: SOAK_SEED repeats from that one on. The long form runs five servers of each transport for ten minutes, or
// SOAK_SECONDS.
func TestFuzzedServer(t *testing.T) {
	t.Parallel()
	first := uint64(soak.Setting("SOAK_SEED", 1))
	batches, limit := soak.Size(5, 2, 1<<30), time.Hour
	if soak.On() {
		limit = time.Duration(soak.Setting("SOAK_SECONDS", 600)) * time.Second
	}
	var servers sync.WaitGroup
	defer servers.Wait()
	for _, transport := range []string{"stdio", "http"} {
		for worker := range soak.Size(1, 1, 5) {
			servers.Go(func() {
				t.Run(fmt.Sprint(transport, worker), func(t *testing.T) {
					db := database(t)
					s := newFuzzed(t, transport, db)
					began := time.Now()
					for n := 0; n < batches && time.Since(began) < limit; n++ {
						if s.batch(first + uint64(worker)<<32 + uint64(n)); t.Failed() {
							return
						}
					}
					s.end()
					verifyFile(t, db)
					store, err := historysql.Open(t.Context(), db, historysql.Options{})
					if err != nil {
						t.Fatal(err)
					}
					defer store.Close()
					if page, err := store.List(t.Context(), history.ListQuery{Phase: history.PhaseCompleted}); err != nil || len(page.Executions) == 0 {
						t.Errorf("no run has completed: %v", err)
					}
					t.Logf("%d batches, %d messages, slowest ping %s, peak %d kB", s.sent, s.messages, s.slowest.Round(time.Millisecond), s.peak)
				})
			})
		}
	}
}

// fuzzed is a server under test.
type fuzzed struct {
	*process
	web   *webServer    // nil over standard input
	seed  atomic.Uint64 // of the batch
	pings chan string
	ended chan struct{}
	tools []fuzzedTool

	sent, messages, peak int
	slowest              time.Duration
}

type fuzzedTool struct {
	Name        string
	InputSchema struct{ Properties map[string]any }
	arguments   []string // sorted
}

func newFuzzed(t *testing.T, transport, db string) *fuzzed {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "asks.json"), []byte(asks), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--store-path", db, "--workflow-dir", folder, "--expose-workflows", "--wait-limit", "100ms", "--max-message-bytes", "300000"}
	handlers := []string{`WORKFLOW_ENGINE_STEP_HANDLERS={"local":{"done":true}}`}
	s := &fuzzed{pings: make(chan string, 8), ended: make(chan struct{})}
	listing := []byte(nil)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	if transport == "http" {
		s.web = spawnHTTP(t, handlers, args...)
		s.process = s.web.process
		close(s.ended)
		session, revision := s.connect("2025-06-18")
		_, listing = s.post(list, "Mcp-Session-Id", session, "Mcp-Protocol-Version", revision)
	} else {
		s.process = spawnWith(t, "", handlers, args...)
		s.stdout.Buffer(nil, 32<<20)
		s.write(hello, list)
		s.read()
		listing, _ = json.Marshal(s.read())
		go s.listen()
	}
	t.Cleanup(func() {
		s.cmd.Process.Kill() // fails if it has ended, as it should
		<-s.ended
	})
	var answer struct{ Result struct{ Tools []fuzzedTool } }
	if err := json.Unmarshal(listing, &answer); err != nil || len(answer.Result.Tools) < 12 {
		t.Fatalf("tools/list: %v\n%.300s", err, listing)
	}
	s.tools = answer.Result.Tools
	for i := range s.tools {
		for name := range s.tools[i].InputSchema.Properties {
			s.tools[i].arguments = append(s.tools[i].arguments, name)
		}
		slices.Sort(s.tools[i].arguments)
	}
	return s
}

// listen reads standard output until its end.
func (s *fuzzed) listen() {
	defer close(s.ended)
	for s.stdout.Scan() {
		if id := s.check(s.stdout.Bytes()); strings.HasPrefix(id, `"ping `) {
			s.pings <- id
		}
	}
}

// check checks an answer, or a batch of them, and returns the id of a single one that succeeded.
func (s *fuzzed) check(text []byte) string {
	type message struct {
		JSONRPC string
		ID      json.RawMessage
		Result  *struct {
			StructuredContent struct {
				Error struct{ Code, Message string }
			}
		}
		Error *struct {
			Code    int
			Message string
		}
	}
	messages := make([]message, 1)
	var err error
	if bytes.HasPrefix(text, []byte("[")) {
		err = json.Unmarshal(text, &messages)
	} else {
		err = json.Unmarshal(text, &messages[0])
	}
	if err != nil {
		s.t.Errorf("seed %d: not JSON-RPC: %v\n%.500s", s.seed.Load(), err, text)
		return ""
	}
	for _, m := range messages {
		failed, reason := false, ""
		if m.Error != nil {
			failed, reason = m.Error.Code == 0 || m.Error.Code == -32603, m.Error.Message
		} else if m.Result != nil {
			failed, reason = m.Result.StructuredContent.Error.Code == "INTERNAL_ERROR", m.Result.StructuredContent.Error.Message
		}
		// A request that comes behind the cancellation of its id may still be cancelled by it.
		if m.JSONRPC != "2.0" || failed && !strings.Contains(reason, "the call was cancelled") {
			s.t.Errorf("seed %d: answered %.3000s", s.seed.Load(), text)
		}
	}
	if len(messages) != 1 || messages[0].Result == nil {
		return ""
	}
	return string(messages[0].ID)
}

// batch sends the messages of a seed, then a ping.
func (s *fuzzed) batch(seed uint64) {
	s.seed.Store(seed)
	s.late.Reset(patience)
	f := newFuzzer(s.t, seed, s.tools)
	texts := make([]string, 60)
	for i := range texts {
		texts[i] = f.message()
	}
	s.sent, s.messages = s.sent+1, s.messages+len(texts)
	began := time.Now()
	if s.web != nil {
		s.postAll(f, texts)
		began = time.Now()
		session, revision := s.connect(f.pick(fuzzedRevisions...))
		if _, text := s.post(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`, "Mcp-Session-Id", session, "Mcp-Protocol-Version", revision); s.check(text) != `"ping"` {
			s.t.Errorf("seed %d: ping is answered %s", seed, text)
		}
		if status, text := s.web.health(); status != http.StatusOK {
			s.t.Errorf("seed %d: health: %d %s", seed, status, text)
		}
	} else {
		ping := fmt.Sprintf(`"ping %d"`, seed)
		text := strings.Join(append(texts, `{"jsonrpc":"2.0","id":`+ping+`,"method":"ping"}`), "\n") + "\n"
		if _, err := io.WriteString(s.stdin, text); err != nil {
			s.t.Fatalf("seed %d: %v\n%s", seed, err, s.stderr)
		}
		select {
		case got := <-s.pings:
			if got != ping {
				s.t.Errorf("seed %d: %s is answered", seed, got)
			}
		case <-s.ended:
			s.t.Fatalf("seed %d: the server has ended, or has not answered a ping for %s\n%s", seed, patience, s.stderr)
		}
	}
	s.slowest = max(s.slowest, time.Since(began))
	s.stderr.mu.Lock()
	defer s.stderr.mu.Unlock()
	if log := s.stderr.buf.String(); strings.Contains(log, "panic") {
		s.t.Errorf("seed %d: logged\n%s", seed, log)
	}
	s.stderr.buf.Reset()
	fmt.Sscan(residentPeak(s.cmd.Process.Pid), &s.peak) // stays 0 where the system does not tell
	if s.peak > fuzzedPeak && !soak.UnderRace {
		s.t.Errorf("seed %d: the server took %d kB of memory", seed, s.peak)
	}
}

// end ends the server, which has to end well.
func (s *fuzzed) end() {
	s.late.Reset(patience)
	s.stdin.Close()
	if s.web != nil && s.cmd.Process.Signal(syscall.SIGTERM) != nil {
		s.cmd.Process.Kill() // Windows has no such signal
	}
	<-s.ended
	if status := s.process.end(); status != 0 && (s.web == nil || runtime.GOOS != "windows") {
		s.t.Errorf("exit status %d\n%s", status, s.stderr)
	}
}

var fuzzedRevisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// connect opens a session.
func (s *fuzzed) connect(revision string) (session, agreed string) {
	resp, _ := s.post(strings.Replace(hello, "2025-06-18", revision, 1))
	return resp.Get("Mcp-Session-Id"), revision
}

// post sends a message that has to be answered.
func (s *fuzzed) post(text string, headers ...string) (http.Header, []byte) {
	resp, body, err := s.do(http.MethodPost, text, patience, headers...)
	if err != nil {
		s.t.Errorf("seed %d: %v\n%s", s.seed.Load(), err, s.stderr)
		return http.Header{}, nil
	}
	return resp.Header, body
}

// do sends a request and returns the message of the answer: of a stream, the last one.
func (s *fuzzed) do(method, text string, limit time.Duration, headers ...string) (*http.Response, []byte, error) {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, method, s.web.url, strings.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for i := 0; i+1 < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		events := body
		body = nil
		for line := range bytes.Lines(events) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && bytes.HasSuffix(data, []byte("\n")) && len(data) > 1 {
				body = data
			}
		}
	}
	return resp, body, err
}

// postAll sends messages as requests, some of them broken, from four clients at once.
func (s *fuzzed) postAll(f *fuzzer, texts []string) {
	session, revision := s.connect(f.pick(fuzzedRevisions...))
	var clients sync.WaitGroup
	defer clients.Wait()
	queues := make([][]func(), 4)
	for i, text := range texts {
		method, headers := http.MethodPost, []string{"Mcp-Session-Id", session, "Mcp-Protocol-Version", revision}
		if f.rng.IntN(4) == 0 { // stands alone
			var m struct {
				Method string
				Params struct{ Name string }
			}
			_ = json.Unmarshal([]byte(text), &m)
			headers = []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", header(m.Method), "Mcp-Name", header(m.Params.Name)}
		}
		if f.rng.IntN(6) == 0 {
			headers = append(headers, f.pick("Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Content-Type", "Accept", "Origin", "Host", "Authorization",
				"Last-Event-ID", "Content-Encoding"), f.pick("", "x", "null", "application/json", "text/plain; charset=latin-1", "*/*", "http://localhost", "https://elsewhere.example", "2024-11-05", "Bearer x", "gzip", strings.Repeat("h", 5000)))
		}
		if f.rng.IntN(15) == 0 {
			method = f.pick("GET", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH", "TRACE", "NONE")
		}
		send := func() { s.sendOne(method, text, headers) }
		if f.rng.IntN(12) == 0 {
			host := strings.Split(s.web.url, "/")[2]
			length := f.pick(fmt.Sprint("Content-Length: ", len(text)), fmt.Sprint("Content-Length: ", 2*len(text)+1), "Content-Length: -1", "Transfer-Encoding: chunked", "Transfer-Encoding: x", "X: y\r\n folded", "no colon")
			raw := method + " /mcp HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: " + session + "\r\n" + length + "\r\n\r\n" + text
			if f.rng.IntN(2) == 0 {
				raw = raw[:f.rng.IntN(len(raw))]
			} else if f.rng.IntN(3) == 0 {
				raw = f.mutate(raw)
			}
			send = func() { s.sendRaw(raw) }
		}
		queues[i%4] = append(queues[i%4], send)
	}
	for _, queue := range queues {
		clients.Go(func() {
			for _, send := range queue {
				send()
			}
		})
	}
}

// header is a text without the bytes that a header cannot have.
func header(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, text)
}

// sendOne sends a well-formed request. Those that last are given up after a moment.
func (s *fuzzed) sendOne(method, text string, headers []string) {
	limit := 2 * time.Second
	if method == http.MethodGet || strings.Contains(text, "subscriptions/listen") {
		limit = 20 * time.Millisecond
	}
	resp, body, err := s.do(method, text, limit, headers...)
	switch {
	case err != nil && !os.IsTimeout(err) && !strings.Contains(err.Error(), context.DeadlineExceeded.Error()):
		s.t.Errorf("seed %d: %s %.200s %q: %v", s.seed.Load(), method, text, headers, err)
	case err == nil && resp.StatusCode >= 500:
		s.t.Errorf("seed %d: %s %.200s %q: %d %s", s.seed.Load(), method, text, headers, resp.StatusCode, body)
	case err == nil && method == http.MethodPost && len(body) > 0 && resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge: // which net/http says in text
		s.check(body)
	}
}

// sendRaw sends bytes, and leaves after a moment.
func (s *fuzzed) sendRaw(raw string) {
	conn, err := net.Dial("tcp", strings.Split(s.web.url, "/")[2])
	if err != nil {
		s.t.Errorf("seed %d: %v", s.seed.Load(), err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(50 * time.Millisecond))
	_, _ = io.WriteString(conn, raw) // a server that refuses does not read the rest
	answer := make([]byte, 1<<10)
	n, _ := conn.Read(answer)
	if bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 500")) {
		s.t.Errorf("seed %d: %.300q: %s", s.seed.Load(), raw, answer[:n])
	}
}
