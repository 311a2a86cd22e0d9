package page

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
)

// followed is an engine whose changes a test makes.
type followed struct {
	graph.Engine
	// follows counts the calls of Follow, ended those that have returned.
	follows, ended atomic.Int32
	changes        chan string
	fail           chan error
}

func (f *followed) Follow(ctx context.Context, changed func(string, int64)) error {
	f.follows.Add(1)
	defer f.ended.Add(1)
	for {
		select {
		case id := <-f.changes:
			changed(id, 1)
		case err := <-f.fail:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// live is a page whose content a test sets, with its event streams.
type live struct {
	*browser
	engine *followed
	// views counts the renderings.
	views atomic.Int32
	html  atomic.Value
	err   atomic.Pointer[problem.Error]
}

func newLive(t *testing.T) *live {
	f := &followed{changes: make(chan string), fail: make(chan error)}
	l := &live{engine: f}
	l.browser = browse(t, func(o *Options) { f.Engine, o.Engine = o.Engine, f }).letIn()
	l.html.Store("<p>0</p>")
	l.page.views = http.NewServeMux()
	l.page.views.HandleFunc("GET /runs/{id}", func(w http.ResponseWriter, r *http.Request) {
		l.views.Add(1)
		out := w.(*rendering)
		out.view = view{Title: "T", Body: template.HTML(l.html.Load().(string)), Follow: []string{r.PathValue("id")}}
		if e := l.err.Load(); e != nil {
			out.view, out.err = view{}, e
		}
	})
	return l
}

// events is an open stream.
type events struct {
	lines chan string
	end   context.CancelFunc
}

// stream opens the stream of a page.
func (l *live) stream(path string) *events {
	ctx, end := context.WithCancel(context.Background())
	in, out := io.Pipe()
	e := &events{lines: make(chan string, 5000), end: end}
	go func() {
		defer out.Close()
		l.do("GET", "/events?view="+path, nil, func(r *http.Request) { *r = *r.WithContext(context.WithValue(ctx, pipeKey{}, out)) })
	}()
	go func() {
		defer close(e.lines)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			if lines.Text() != "" {
				e.lines <- lines.Text()
			}
		}
	}()
	return e
}

type pipeKey struct{}

// seen returns the lines that have come, once nothing moves.
func (e *events) seen() (lines []string) {
	synctest.Wait()
	for {
		select {
		case line, ok := <-e.lines:
			if !ok {
				return append(lines, "end")
			}
			lines = append(lines, line)
		default:
			return lines
		}
	}
}

func (e *events) want(t *testing.T, want ...string) {
	t.Helper()
	if got := e.seen(); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("came:\n%q, want:\n%q", got, want)
	}
}

func viewEvent(n int, html string, changed int) []string {
	data, _ := json.Marshal(html)
	text := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(data))
	return []string{"id: " + strconv.Itoa(n), "event: view", `data: {"changed":` + strconv.Itoa(changed) + `,"html":` + text + `,"title":"T"}`}
}

// TestEvents: a page is sent whole at first, then rendered at most four times a second after changes of its runs, and sent only if its HTML
// differs.
func TestEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t)
		e := l.stream("/runs/a")
		e.want(t, append([]string{"retry: 1000"}, viewEvent(1, "<p>0</p>", 0)...)...)

		time.Sleep(time.Second)
		for i := range 100 { // within a tenth of a second
			l.html.Store("<p>" + strconv.Itoa(i) + "</p>")
			l.engine.changes <- "a"
			time.Sleep(time.Millisecond)
		}
		e.seen()
		time.Sleep(time.Second)
		if n := l.views.Load(); n != 3 { // the first one, one at once, one for all others
			t.Errorf("rendered %d times", n)
		}
		if got := e.seen(); len(got) > 0 && !strings.Contains(got[len(got)-1], "<p>99</p>") {
			t.Errorf("the last state was not sent: %q", got)
		}
		before := l.views.Load()
		for range 40 { // ten changes a second
			l.engine.changes <- "a"
			time.Sleep(100 * time.Millisecond)
		}
		if n := l.views.Load() - before; n < 10 || n > 17 {
			t.Errorf("rendered %d times in four seconds", n)
		}
		time.Sleep(time.Second)
		for _, line := range e.seen() {
			if line != ": " {
				t.Errorf("sent without a change: %s", line)
			}
		}
		before = l.views.Load()
		l.engine.changes <- "b"
		time.Sleep(time.Second)
		if l.views.Load() != before {
			t.Error("rendered after the change of another run")
		}
		e.end()
		if got := e.seen(); got[len(got)-1] != "end" {
			t.Errorf("no end: %q", got)
		}
	})
}

// TestAQuietStream has a comment every 15 seconds, and ends with its session.
func TestAQuietStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t)
		e := l.stream("/runs/a")
		e.seen()
		time.Sleep(31 * time.Second)
		e.want(t, ": ", ": ")
		time.Sleep(sessionTime)
		if got := e.seen(); got[len(got)-1] != "end" {
			t.Error("the stream is open after its session")
		}
	})
}

// oneConn is a listener for a single connection.
type oneConn struct {
	conns chan net.Conn
	once  sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8123} }

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.conns) })
	return nil
}

// TestAStreamOutlastsARequest: the time limit for the text of a request does not end a stream.
func TestAStreamOutlastsARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t)
		ctx, end := context.WithCancel(context.Background())
		context.AfterFunc(ctx, l.page.Close)
		listener := &oneConn{conns: make(chan net.Conn, 1)}
		served := make(chan error, 1)
		go func() { served <- httpguard.Serve(ctx, listener, l.page, slog.New(slog.DiscardHandler)) }()
		in, out := net.Pipe()
		listener.conns <- out
		if _, err := io.WriteString(in, "GET /events?view=/runs/a HTTP/1.1\r\nHost: "+strings.TrimPrefix(testOrigin, "http://")+"\r\nCookie: "+l.cookie+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(in), nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(answer, err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = io.Copy(io.Discard, answer.Body)
		}()
		time.Sleep(10 * httpguard.ReadTime)
		synctest.Wait()
		select {
		case <-ended:
			t.Error("the stream has ended")
		default:
		}
		end()
		<-ended
		in.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// TestAStreamThatIsEnded: the error of a view whose stream has ended meanwhile is not shown.
func TestAStreamThatIsEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t)
		var e *events
		renders := 0
		l.page.views = http.NewServeMux()
		l.page.views.HandleFunc("GET /runs/{id}", func(w http.ResponseWriter, r *http.Request) {
			if renders++; renders > 1 {
				e.end()
			}
			w.(*rendering).err = r.Context().Err()
		})
		e = l.stream("/runs/a")
		e.seen()
		time.Sleep(time.Second)
		l.engine.changes <- "a"
		e.want(t, "end")
	})
}

// TestOneFollow: any number of streams share one Follow, which ends with the last of them.
func TestOneFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t)
		one, two := l.stream("/runs/a"), l.stream("/runs/b")
		one.seen()
		two.seen()
		if n := l.engine.follows.Load(); n != 1 {
			t.Errorf("%d calls of Follow", n)
		}
		one.end()
		one.seen()
		if l.engine.ended.Load() != 0 {
			t.Error("Follow ended with the first stream")
		}
		two.end()
		two.seen()
		synctest.Wait()
		if l.engine.ended.Load() != 1 {
			t.Error("Follow goes on without a stream")
		}
		l.stream("/runs/a").end()
	})
}

// TestFourStreams: a fifth stream of a session pauses the oldest.
func TestFourStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t)
		var all []*events
		for range maxStreams + 1 {
			e := l.stream("/runs/a")
			synctest.Wait()
			all = append(all, e)
		}
		got := all[0].seen()
		if len(got) < 3 || got[len(got)-1] != "end" || got[len(got)-3] != "event: paused" {
			t.Errorf("the oldest: %q", got)
		}
		for i, e := range all[1:] {
			if got := e.seen(); got[len(got)-1] == "end" {
				t.Errorf("stream %d ended", i+1)
			}
			e.end()
		}
	})
}

// TestAStoreThatIsGone: the page hears so once, is tried after 1, 2, 4, … 30 seconds, and is sent whole when it can be read again.
func TestAStoreThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t)
		e := l.stream("/runs/a")
		e.seen()
		time.Sleep(time.Second)
		l.err.Store(problem.New(problem.StoreUnavailable, "gone"))
		l.engine.changes <- "a"
		time.Sleep(time.Millisecond)
		got := e.seen()
		if len(got) != 3 || got[1] != "event: trouble" || strings.Contains(got[2], "gone") {
			t.Fatalf("came %q", got)
		}
		before := l.views.Load()
		for i, wait := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			time.Sleep(wait * time.Second)
			synctest.Wait()
			if n := l.views.Load() - before; int(n) != i+1 {
				t.Errorf("after the wait of %d s tried %d times", wait, n)
			}
		}
		for _, line := range e.seen() {
			if line != ": " {
				t.Errorf("came %q", line)
			}
		}
		l.err.Store(nil)
		l.html.Store("<p>back</p>")
		time.Sleep(30 * time.Second)
		lines := strings.Join(e.seen(), "|")
		if !strings.Contains(lines, "event: well") || !strings.Contains(lines, "<p>back</p>") {
			t.Errorf("came %q", lines)
		}
		e.end()
		e.seen()
	})
}

// TestAFailedUpdate: an error does not take the place of a page that is shown, which may have a form.
func TestAFailedUpdate(t *testing.T) {
	t.Parallel()
	for code, next := range map[problem.Code]time.Duration{problem.EngineFailure: firstRetry, problem.ExecutionNotFound: renderTime} {
		synctest.Test(t, func(t *testing.T) {
			l := newLive(t)
			e := l.stream("/runs/a")
			e.seen()
			time.Sleep(time.Second)
			l.err.Store(problem.New(code, "context canceled"))
			l.engine.changes <- "a"
			time.Sleep(time.Millisecond)
			e.want(t, "id: 2", "event: trouble", `data: {"text":"The page cannot be updated: context canceled."}`)
			l.err.Store(nil)
			l.html.Store("<p>back</p>")
			l.engine.changes <- "a"
			time.Sleep(next)
			if lines := strings.Join(e.seen(), "|"); !strings.Contains(lines, "event: well") || !strings.Contains(lines, "<p>back</p>") {
				t.Errorf("came %q", lines)
			}
			e.end()
			e.seen()
		})
	}
}

// TestAFollowThatFails is begun again, and what was missed meanwhile is rendered.
func TestAFollowThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t)
		e := l.stream("/runs/a")
		e.seen()
		l.engine.fail <- errors.New("gone")
		l.html.Store("<p>1</p>")
		time.Sleep(firstRetry + renderTime)
		if got := strings.Join(e.seen(), "|"); !strings.Contains(got, "<p>1</p>") || l.engine.follows.Load() != 2 {
			t.Errorf("came %q, followed %d times", got, l.engine.follows.Load())
		}
		e.end()
		e.seen()
	})
}

// TestTheServerEnds: Close ends all streams.
func TestTheServerEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t)
		e := l.stream("/runs/a")
		e.seen()
		l.page.Close()
		e.want(t, "end")
	})
}

// TestSigningOutEndsStreams: a session that ends has no stream any more, also while one waits to render. Others go on.
func TestSigningOutEndsStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t)
		kept := l.cookie
		other := l.stream("/runs/a")
		other.seen()
		l.letIn()
		idle, waiting := l.stream("/runs/a"), l.stream("/runs/a")
		idle.seen()
		waiting.seen()
		l.html.Store("<p>1</p>")
		l.engine.changes <- "a"
		l.want(l.do("POST", outPath, l.outForm()), http.StatusSeeOther)
		idle.want(t, "end")
		waiting.want(t, "end")
		time.Sleep(time.Second)
		if got := strings.Join(other.seen(), "|"); !strings.Contains(got, "<p>1</p>") || strings.Contains(got, "end") {
			t.Errorf("the other session has %s", got)
		}
		l.cookie = kept
		for range maxSessions { // the oldest ends, and so does its stream
			l.page.sessions.begin(l.session().caller)
			time.Sleep(time.Second)
			if l.session() == nil {
				break
			}
		}
		if got := other.seen(); got[len(got)-1] != "end" {
			t.Errorf("the stream goes on: %q", got)
		}
	})
}

// TestEventsOfNoPage: events are those of a page of this server.
func TestEventsOfNoPage(t *testing.T) {
	t.Parallel()
	b := browse(t).letIn()
	b.want(b.do("GET", "/events?view=/events?view=/", nil), http.StatusBadRequest)
	b.want(b.do("GET", "/events?view=/", nil, header("Cookie", "")), http.StatusUnauthorized)
	b.want(b.do("HEAD", "/events?view=/", nil), http.StatusOK) // ends, because it has no body
}
