package stdio_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/stdio"
)

// output collects what a connection writes, as lines.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func connect(t *testing.T, tr *stdio.Transport) mcp.Connection {
	t.Helper()
	c, err := tr.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// answer writes a response with the given result.
func answer(t *testing.T, c mcp.Connection, id jsonrpc.ID, result string) {
	t.Helper()
	if err := c.Write(t.Context(), &jsonrpc.Response{ID: id, Result: json.RawMessage(result)}); err != nil {
		t.Errorf("Write: %v", err)
	}
}

func number(t *testing.T, n float64) jsonrpc.ID {
	t.Helper()
	id, err := jsonrpc.MakeID(n)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestMCP12_1_13_MalformedInput: every line that is no message is answered, with the sender's id if the line has one, and the
// lines after it are read.
func TestMCP12_1_13_MalformedInput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	for _, tt := range []struct {
		name, line string
		id         string
		code       int
		message    string
	}{
		{"no JSON", `{"jsonrpc":`, "null", -32700, "not JSON"},
		{"broken behind the id", `{"jsonrpc":"2.0","id":7,"method":"ping",}`, "7", -32700, "byte"},
		{"text", `hello`, "null", -32700, "not JSON"},
		{"two messages", `{"jsonrpc":"2.0","id":1,"method":"a"} {}`, "1", -32700, "after top-level value"},
		{"number", `42`, "null", -32600, "found number"},
		{"string", `"ping"`, "null", -32600, "found string"},
		{"null", `null`, "null", -32600, "found null"},
		{"no version", `{"id":3,"method":"ping"}`, "3", -32600, `"jsonrpc"`},
		{"wrong version", `{"jsonrpc":"1.0","id":"a","method":"ping"}`, `"a"`, -32600, `"jsonrpc"`},
		{"null version", `{"jsonrpc":null,"id":"a","method":"ping"}`, `"a"`, -32600, `"jsonrpc"`},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, "null", -32600, `"id"`},
		{"fractional id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, "null", -32600, `"id"`},
		{"id beyond doubles", `{"jsonrpc":"2.0","id":90071992547409930,"method":"ping"}`, "null", -32600, `"id"`},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, "null", -32600, `"id"`},
		{"no method", `{"jsonrpc":"2.0","id":4}`, "4", -32600, `"method" is missing`},
		{"null method", `{"jsonrpc":"2.0","id":4,"method":null}`, "4", -32600, `"method" must be`},
		{"numeric method", `{"jsonrpc":"2.0","id":4,"method":5}`, "4", -32600, `"method" must be`},
		{"header", `Content-Length: 52`, "null", -32700, "Content-Length"},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"p\xff\"}", "8", -32700, "UTF-8 (byte 36)"},
		{"batch before initialize", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "null", -32600, "initialize"},
		{"broken batch", `[1,`, "null", -32700, "not JSON"},
		{"long, id first", `{"jsonrpc":"2.0","id":9,"method":"` + long + `"}`, "9", -32600, "longer than 2000 bytes"},
		{"long, id last", `{"method":"` + long + `","jsonrpc":"2.0","id":"z"}`, `"z"`, -32600, "longer"},
		{"long, id lost", `{"method":"` + long + `","id":5,"jsonrpc":"2.0"}`, "null", -32600, "longer"},
		{"long, id inside", `{"method":"` + long + `","params":{"id":5}}`, "null", -32600, "longer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out output
			in := tt.line + "\n" + `{"jsonrpc":"2.0","method":"after"}` + "\n"
			c := connect(t, &stdio.Transport{In: strings.NewReader(in), Out: &out, MaxMessageBytes: 2000})
			m, err := c.Read(t.Context())
			if err != nil {
				t.Fatalf("Read: %v", err)
			}
			if req, ok := m.(*jsonrpc.Request); !ok || req.Method != "after" {
				t.Errorf("read %#v from the next line", m)
			}
			var got struct {
				JSONRPC string
				ID      json.RawMessage
				Error   struct {
					Code    int
					Message string
				}
			}
			if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
				t.Fatalf("answer %q: %v", out.String(), err)
			}
			if got.JSONRPC != "2.0" || string(got.ID) != tt.id || got.Error.Code != tt.code ||
				!strings.Contains(got.Error.Message, tt.message) {
				t.Errorf("answer %s; want id %s, code %d, %q", out.String(), tt.id, tt.code, tt.message)
			}
		})
	}
}

// Lines that need no answer are skipped; every form that JSON allows is read.
func TestAccepted(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"plain":                 `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}` + "\n",
		"no line end":           `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}`,
		"carriage return":       `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}` + "\r\n",
		"byte order mark":       "\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}` + "\n",
		"spaces":                ` {"params" : {"a":1}, "jsonrpc":"2.0" ,"id":1.0,"method":"m"}  ` + "\n",
		"empty lines":           "\n\r\n  \n" + `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}` + "\n",
		"unknown fields":        `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1},"x":[]}` + "\n",
		"stray broken response": `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out output
			c := connect(t, &stdio.Transport{In: strings.NewReader(in), Out: &out})
			m, err := c.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			req, ok := m.(*jsonrpc.Request)
			if !ok || req.Method != "m" || req.ID != number(t, 1) || string(req.Params) != `{"a":1}` {
				t.Errorf("read %#v", m)
			}
			if out.String() != "" {
				t.Errorf("answered %s", out.String())
			}
		})
	}
}

func TestResponseIsPassedOn(t *testing.T) {
	t.Parallel()
	c := connect(t, &stdio.Transport{In: strings.NewReader(`{"jsonrpc":"2.0","id":1,"result":{}}`), Out: io.Discard})
	if m, err := c.Read(t.Context()); err != nil || m.(*jsonrpc.Response).ID != number(t, 1) {
		t.Errorf("read %#v, %v", m, err)
	}
}

// At the end of input Read waits for the requests in flight, because the session drops their answers once Read fails.
func TestEndOfInputDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out output
		c := connect(t, &stdio.Transport{In: strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"slow"}`), Out: &out})
		if _, err := c.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(5 * time.Second)
			answer(t, c, number(t, 1), `{}`)
		}()
		began := time.Now()
		if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("Read at the end: %v", err)
		}
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("waited %s", waited)
		}
		if out.String() != `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n" {
			t.Errorf("wrote %q", out.String())
		}
	})
}

func TestDrainIsBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stop bool
		want time.Duration
	}{
		"end of input": {false, stdio.DefaultDrainLimit},
		"stopped":      {true, stdio.DefaultStopLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in, feed := io.Pipe()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c, err := (&stdio.Transport{In: in, Out: io.Discard}).Connect(ctx)
				if err != nil {
					t.Fatal(err)
				}
				go fmt.Fprintln(feed, `{"jsonrpc":"2.0","id":1,"method":"stuck"}`)
				if _, err := c.Read(t.Context()); err != nil {
					t.Fatal(err)
				}
				if tt.stop {
					cancel()
				} else {
					feed.Close()
				}
				began := time.Now()
				if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
					t.Errorf("Read: %v", err)
				}
				if waited := time.Since(began); waited != tt.want {
					t.Errorf("waited %s, want %s", waited, tt.want)
				}
				c.Close()
				feed.Close()
			})
		})
	}
}

func TestCloseEndsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, feed := io.Pipe()
		c := connect(t, &stdio.Transport{In: in, Out: io.Discard})
		go c.Close()
		if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("Read: %v", err)
		}
		feed.Close()
	})
}

func TestIDInUse(t *testing.T) {
	t.Parallel()
	var out output
	in := strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"m"}`+"\n", 2) + `{"jsonrpc":"2.0","method":"after"}`
	c := connect(t, &stdio.Transport{In: strings.NewReader(in), Out: &out})
	for _, want := range []string{"m", "after"} {
		m, err := c.Read(t.Context())
		if err != nil || m.(*jsonrpc.Request).Method != want {
			t.Fatalf("read %#v, %v; want %s", m, err, want)
		}
	}
	if got := out.String(); !strings.Contains(got, `"id":null`) || !strings.Contains(got, "id 1 is in flight") {
		t.Errorf("answered %s", got)
	}
	answer(t, c, number(t, 1), `{}`)
	if lines := strings.Count(out.String(), "\n"); lines != 2 {
		t.Errorf("%d lines: %s", lines, out.String())
	}
}

func TestCancelledRequestIsNotAnswered(t *testing.T) {
	t.Parallel()
	var out output
	in := `{"jsonrpc":"2.0","id":1,"method":"m"}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"m"}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"requestid":2}}` + "\n"
	c := connect(t, &stdio.Transport{In: strings.NewReader(in), Out: &out})
	for range 5 {
		if _, err := c.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	answer(t, c, number(t, 1), `{}`)
	if out.String() != "" {
		t.Errorf("answered %s", out.String())
	}
	answer(t, c, number(t, 2), `{}`) // the session does not take another spelling for the name either
	if !strings.Contains(out.String(), `"id":2`) {
		t.Errorf("request 2, which nobody has cancelled, is not answered: %q", out.String())
	}
}

// A cancellation with an id is no notification: it is refused, and cancels nothing.
func TestARequestDoesNotCancel(t *testing.T) {
	t.Parallel()
	var out output
	in := `{"jsonrpc":"2.0","id":1,"method":"m"}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"notifications/cancelled","params":{"requestId":1}}` + "\n"
	c := connect(t, &stdio.Transport{In: strings.NewReader(in), Out: &out})
	if _, err := c.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		m, err := c.Read(t.Context())
		if err == nil {
			t.Errorf("the session was handed %v", m)
		}
		ended <- err
	}()
	answer(t, c, number(t, 1), `{}`)
	<-ended
	if text := out.String(); !strings.Contains(text, `"id":1,"result"`) || !strings.Contains(text, `"id":2,"error":{"code":-32600`) {
		t.Errorf("answered %s", text)
	}
}

// initialize negotiates the revision of the connection.
func initialize(t *testing.T, c mcp.Connection, revision string) {
	t.Helper()
	if _, err := c.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	answer(t, c, number(t, 0), `{"protocolVersion":"`+revision+`"}`)
}

func TestBatches(t *testing.T) {
	t.Parallel()
	const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}` + "\n"
	const one, two = `{"jsonrpc":"2.0","id":1,"method":"a"}`, `{"jsonrpc":"2.0","id":2,"method":"b"}`
	for name, tt := range map[string]struct {
		revision, batch string
		messages        int
		want            string
	}{
		"answered together": {"2025-03-26", `[` + one + `,{"jsonrpc":"2.0","method":"n"},` + two + `]`, 3,
			`[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]`},
		"broken members": {"2024-11-05", `[` + one + `,7,` + one + `]`, 1,
			`[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"expected a JSON object, found number"}},` +
				`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a request with id 1 is in flight already"}},` +
				`{"jsonrpc":"2.0","id":1,"result":{}}]`},
		"only broken members": {"2025-03-26", `[7]`, 0,
			`[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"expected a JSON object, found number"}}]`},
		"only notifications": {"2025-03-26", `[{"jsonrpc":"2.0","method":"n"}]`, 1, ``},
		"empty": {"2025-03-26", `[]`, 0,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the batch is empty"}}`},
		"later revisions": {"2025-06-18", `[` + one + `]`, 0,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"protocol revision 2025-06-18 has no batches: send the messages one by one"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out output
				in, feed := io.Pipe()
				c := connect(t, &stdio.Transport{In: in, Out: &out})
				go io.WriteString(feed, hello)
				initialize(t, c, tt.revision)
				before := out.String()
				go func() {
					io.WriteString(feed, tt.batch+"\n"+`{"jsonrpc":"2.0","method":"after"}`+"\n")
					feed.Close()
				}()
				var ids []jsonrpc.ID
				for range tt.messages {
					m, err := c.Read(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if req := m.(*jsonrpc.Request); req.IsCall() {
						ids = append(ids, req.ID)
					}
				}
				for i := len(ids) - 1; i >= 0; i-- {
					answer(t, c, ids[i], `{}`)
				}
				if m, err := c.Read(t.Context()); err != nil || m.(*jsonrpc.Request).Method != "after" {
					t.Fatalf("after the batch: %#v, %v", m, err)
				}
				if got := strings.TrimSpace(strings.TrimPrefix(out.String(), before)); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			})
		})
	}
}

// The SDK leaves some errors without a code and quotes whole parameters in others.
func TestErrorsGetACode(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		method string
		err    error
		want   string
	}{
		"out of order":   {"tools/list", errors.New("too early"), `{"code":-32600,"message":"too early"}`},
		"bad initialize": {"initialize", errors.New("no version"), `{"code":-32602,"message":"no version"}`},
		"coded":          {"x", fmt.Errorf("more: %w", &jsonrpc.Error{Code: -32601, Message: "m"}), `{"code":-32601,"message":"more: m"}`},
		"long": {"x", &jsonrpc.Error{Code: -32602, Message: strings.Repeat("p", 5000)},
			`{"code":-32602,"message":"` + strings.Repeat("p", 400) + ` …"}`},
		"long parameters before the reason": {"x", &jsonrpc.Error{Code: -32602, Message: `invalid params: unmarshaling "` + strings.Repeat("[", 5000) + `": too deep`},
			`{"code":-32602,"message":"invalid params: too deep; found \"` + strings.Repeat("[", 400-len(`invalid params: too deep; found "`)) + ` …"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out output
			in := `{"jsonrpc":"2.0","id":1,"method":"` + tt.method + `","params":{}}`
			c := connect(t, &stdio.Transport{In: strings.NewReader(in), Out: &out})
			if _, err := c.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := c.Write(t.Context(), &jsonrpc.Response{ID: number(t, 1), Error: tt.err}); err != nil {
				t.Fatal(err)
			}
			if want := `{"jsonrpc":"2.0","id":1,"error":` + tt.want + "}\n"; out.String() != want {
				t.Errorf("got  %s\nwant %s", out.String(), want)
			}
		})
	}
}

// An overlong line is skipped without being buffered: 40 MB pass a limit of 1 MB.
func TestLongLineIsNotKept(t *testing.T) {
	t.Parallel()
	var out output
	in := io.MultiReader(
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`),
		io.LimitReader(filler{}, 40<<20),
		strings.NewReader("\"}\n"+`{"jsonrpc":"2.0","method":"after"}`))
	c := connect(t, &stdio.Transport{In: in, Out: &out, MaxMessageBytes: 1 << 20})
	if m, err := c.Read(t.Context()); err != nil || m.(*jsonrpc.Request).Method != "after" {
		t.Fatalf("read %#v, %v", m, err)
	}
	if !strings.HasPrefix(out.String(), `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`) {
		t.Errorf("answered %s", out.String())
	}
}

type filler struct{}

func (filler) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// Any line produces a message, an answer or nothing, and the connection stays usable to the end of input.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"m"}`, `[{"jsonrpc":"2.0","id":1,"method":"m"}]`, "\xff", `{"id":`, "", "\ufeff{}",
		`{"jsonrpc":"2.0","id":"\ud800","method":"m"}`, strings.Repeat("[", 200), "Content-Length: 1", `{"method":"` + strings.Repeat("x", 300) + `","id":3}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var out output
		tr := &stdio.Transport{In: bytes.NewReader(in), Out: &out, MaxMessageBytes: 256, DrainLimit: time.Nanosecond}
		c := connect(t, tr)
		for {
			m, err := c.Read(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || m == nil {
				t.Fatalf("Read: %v, %v", m, err)
			}
		}
		for l := range strings.Lines(out.String()) {
			if !json.Valid([]byte(l)) {
				t.Errorf("answer is not JSON: %q", l)
			}
		}
	})
}
