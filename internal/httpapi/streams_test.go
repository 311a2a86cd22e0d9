package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/internal/httpapi"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
)

// again is a workflow with an activity that is repeated for ever.
const again = `{"document":{"schema":"s","name":"again","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"a","type":"start"},` +
	`{"id":"work","type":"step","config":{"handler":"urn:x"}},{"id":"loop","type":"switch","config":{"cases":[{"when":".n == -1","target":"z"}],"default":"work"}},{"id":"z","type":"end"}],` +
	`"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"work"},{"source":"work","target":"loop"}]}`

// begin starts a run of again.
func (c *client) begin(id string) {
	c.t.Helper()
	c.want(201, "POST", "/v1/executions", "/v1/executions", `{"execution_id":"`+id+`","activity_execution_mode":"host_mediated","definition":`+again+`}`)
}

// round performs its activity once.
func (c *client) round(id string, result map[string]any) {
	c.t.Helper()
	if _, err := c.runner.SubmitActivity(c.t.Context(), graph.SubmitRequest{ExecutionID: id, NodeID: "work", OK: true, Result: result}); err != nil {
		c.t.Fatal(err)
	}
}

// pipes is a listener for connections in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error   { close(l.closed); return nil }
func (l *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8772} }

// dial connects to the server and sends a text.
func (l *pipes) dial(t *testing.T, text string) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	l.conns <- there
	if _, err := io.WriteString(here, text); err != nil {
		t.Fatal(err)
	}
	return here
}

// serving runs f in a bubble with the API behind the server of the command serve.
func serving(t *testing.T, f func(t *testing.T, c *client, l *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, nil)
		l := &pipes{make(chan net.Conn), make(chan struct{})}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- httpguard.Serve(ctx, l, c.handler, slog.New(slog.DiscardHandler)) }()
		f(t, c, l)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

const head = " HTTP/1.1\r\nHost: 127.0.0.1:8772\r\nAuthorization: Bearer " + writer + "\r\n"

// TestClientsThatDoNotReadAStream: they end after a minute, leave their place, and meanwhile hold up neither the run nor a client that reads.
func TestClientsThatDoNotReadAStream(t *testing.T) {
	t.Parallel()
	serving(t, func(t *testing.T, c *client, l *pipes) {
		c.begin("r")
		idle := l.dial(t, "GET /v1/executions/r/events"+head+"Accept: text/event-stream\r\n\r\n")
		defer idle.Close()
		all := l.dial(t, "GET /v1/events"+head+"\r\n")
		defer all.Close()
		reads := l.dial(t, "GET /v1/executions/r/events"+head+"Accept: text/event-stream\r\n\r\n")
		defer reads.Close()
		seen := make(chan int64, 1)
		go func() {
			var last int64
			for lines := bufio.NewScanner(reads); lines.Scan(); {
				if id, found := strings.CutPrefix(lines.Text(), "id: "); found {
					last, _ = strconv.ParseInt(id, 10, 64)
				}
				if lines.Text() == "event: end" {
					break
				}
			}
			seen <- last
		}()
		for range 20 {
			c.round("r", map[string]any{"n": 1.0, "text": strings.Repeat("x", 10_000)})
		}
		c.round("r", map[string]any{"n": -1.0})
		synctest.Wait()
		if run, err := c.runner.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"}); err != nil || !run.Status.Terminal() {
			t.Errorf("the run is %v, %v", run, err)
		} else if last := <-seen; last != run.Seq {
			t.Errorf("the client that reads has %d of %d records", last, run.Seq)
		}
		server := c.handler.(*httpapi.Server)
		if n := server.OpenStreams(); n != 2 {
			t.Errorf("%d streams are open", n)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := server.OpenStreams(); n != 0 {
			t.Errorf("%d streams are open after two minutes", n)
		}
	})
}

// TestBodiesThatDoNotComeIn: a request whose body stops in the middle ends after a minute, whatever its size, and nothing is done.
func TestBodiesThatDoNotComeIn(t *testing.T) {
	t.Parallel()
	serving(t, func(t *testing.T, c *client, l *pipes) {
		c.begin("r")
		for _, length := range []string{"Content-Length: 100", "Content-Length: 1000000", "Transfer-Encoding: chunked"} {
			slow := l.dial(t, "POST /v1/executions/r:cancel"+head+"Content-Type: application/json\r\n"+length+"\r\n\r\n")
			began := time.Now()
			answer, err := http.ReadResponse(bufio.NewReader(slow), nil)
			if err != nil || answer.StatusCode != http.StatusBadRequest || time.Since(began) > httpguard.ReadTime+time.Second {
				t.Errorf("%s: %+v, %v after %s", length, answer, err, time.Since(began))
			}
			slow.Close()
		}
		// As long as it is in time, the body may come slowly.
		slow := l.dial(t, "POST /v1/executions/r:cancel"+head+"Content-Type: application/json\r\nContent-Length: 20\r\n\r\n")
		for _, c := range `{"reason": "enough"}` {
			time.Sleep(2 * time.Second)
			if _, err := io.WriteString(slow, string(c)); err != nil {
				t.Fatal(err)
			}
		}
		if answer, err := http.ReadResponse(bufio.NewReader(slow), nil); err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("slow, in time: %+v, %v", answer, err)
		}
		slow.Close()
	})
}

// TestStreamLimits: there is a most of all streams and of those of a token; a stream that ends leaves its place.
func TestStreamLimits(t *testing.T) {
	t.Parallel()
	c := newClient(t, nil)
	c.begin("r")
	server := c.handler.(*httpapi.Server)
	open := func(token string) (status int, end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		r := request(t, "GET", "/v1/executions/r/events", "").WithContext(ctx)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Accept", "text/event-stream")
		w := &began{ResponseRecorder: httptest.NewRecorder(), status: make(chan int, 1)}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.handler.ServeHTTP(w, r)
		}()
		return <-w.status, func() { cancel(); <-ended }
	}
	var ends []func()
	for i := range httpapi.MaxCallerStreams {
		status, end := open(writer)
		if ends = append(ends, end); status != http.StatusOK {
			t.Fatalf("stream %d: %d", i, status)
		}
	}
	if status, _ := open(writer); status != http.StatusTooManyRequests {
		t.Errorf("one more: %d", status)
	}
	status, end := open(reader)
	if status != http.StatusOK {
		t.Errorf("another token: %d", status)
	}
	end()
	ends[0]()
	if status, end := open(writer); status != http.StatusOK {
		t.Errorf("after one has ended: %d", status)
	} else {
		end()
	}
	for _, end := range ends[1:] {
		end()
	}
	if n := server.OpenStreams(); n != 0 {
		t.Errorf("%d streams are left", n)
	}
}

// began tells the status of an answer.
type began struct {
	*httptest.ResponseRecorder
	status chan int
}

func (w *began) WriteHeader(status int) {
	w.ResponseRecorder.WriteHeader(status)
	select {
	case w.status <- status:
	default:
	}
}

// TestResumedStreams: a client that is cut off and comes again with Last-Event-ID gets each record once, however often that happens.
func TestResumedStreams(t *testing.T) {
	t.Parallel()
	c := newClient(t, nil)
	site := httptest.NewServer(c.handler)
	defer site.Close()
	c.begin("r")
	go func() {
		for i := range 60 {
			n := 1.0
			if i == 59 {
				n = -1
			}
			if _, err := c.runner.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "work", OK: true, Result: map[string]any{"n": n}}); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	var last int64
	for cut := 0; ; cut++ {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", site.URL+"/v1/executions/r/events", nil)
		r.Header.Set("Authorization", "Bearer "+reader)
		r.Header.Set("Accept", "text/event-stream")
		if last > 0 {
			r.Header.Set("Last-Event-ID", strconv.FormatInt(last, 10))
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		id, name, data, taken, ended := int64(0), "", "", 0, false
		for lines := bufio.NewScanner(answer.Body); taken <= cut%7 && !ended && lines.Scan(); {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "id":
				id, _ = strconv.ParseInt(value, 10, 64)
			case "event":
				name = value
			case "data":
				data = value
			case "":
				switch {
				case name == "record":
					if id != last+1 || !strings.Contains(data, fmt.Sprintf(`"seq":%d,`, id)) {
						t.Fatalf("after %d comes %d: %s", last, id, data)
					}
					last = id
					taken++
				case name == "end":
					ended = true
				}
				name = ""
			}
		}
		answer.Body.Close()
		if ended {
			break
		}
	}
	if run, err := c.runner.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"}); err != nil || last != run.Seq {
		t.Errorf("got %d records of %v (%v)", last, run, err)
	}
}
