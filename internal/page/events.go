package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
)

const (
	// renderTime is the shortest time between two renderings of a stream: four a second.
	renderTime = 250 * time.Millisecond
	// pollTime is how often views are rendered if the engine reports no changes.
	pollTime = time.Second
	// aliveTime is how often a stream without events has a comment.
	aliveTime = 15 * time.Second
	// firstRetry and lastRetry bound the time between two attempts to read a store that fails. It doubles with each.
	firstRetry, lastRetry = time.Second, 30 * time.Second
	// sendTime limits the time that a browser may take to read an event.
	sendTime = time.Minute
)

// feed distributes the changes of all runs to the streams. It follows the engine once for all of them, while there are any.
type feed struct {
	engine graph.Engine

	mu      sync.Mutex
	streams map[*stream]bool
	stop    context.CancelFunc
}

// stream is the events of one page.
type stream struct {
	// wake has a value after a change of the runs that are followed.
	wake chan struct{}
	// paused is closed when the session has too many streams.
	paused chan struct{}

	mu sync.Mutex
	// follow has the runs of the page; nil is every run.
	follow []string
	// changed has the runs that changed since the last rendering.
	changed map[string]bool
}

func newStream() *stream {
	return &stream{wake: make(chan struct{}, 1), paused: make(chan struct{}), changed: map[string]bool{}}
}

// add begins to feed a stream.
func (f *feed) add(st *stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams == nil {
		f.streams = map[*stream]bool{}
	}
	f.streams[st] = true
	if f.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		f.stop = stop
		go f.follow(ctx)
	}
}

// remove ends that. The last stream ends the following.
func (f *feed) remove(st *stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.streams, st)
	if len(f.streams) == 0 && f.stop != nil {
		f.stop()
		f.stop = nil
	}
}

// follow passes on changes until ctx ends. After a failure, whatever was missed renders every page again.
func (f *feed) follow(ctx context.Context) {
	engine, ok := f.engine.(graph.Follower)
	for wait := firstRetry; ctx.Err() == nil; wait = min(2*wait, lastRetry) {
		pause := pollTime
		if ok {
			began := time.Now()
			if engine.Follow(ctx, f.changed) != nil {
				if time.Since(began) > lastRetry {
					wait = firstRetry
				}
				pause = wait
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		f.changed("", 0)
	}
}

// changed marks the streams that show a run; all of them for "".
func (f *feed) changed(id string, _ int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for st := range f.streams {
		st.touch(id)
	}
}

func (st *stream) touch(id string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if id != "" {
		if st.follow != nil && !slices.Contains(st.follow, id) {
			return
		}
		st.changed[id] = true
	}
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// take returns how many runs changed since the last call. What wakes the stream after it is a later change.
func (st *stream) take() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	select {
	case <-st.wake:
	default:
	}
	n := len(st.changed)
	clear(st.changed)
	return n
}

func (st *stream) show(follow []string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.follow = follow
}

// events answers GET /events?view=PATH with a stream of server-sent events: "view" with the page's title, content and how many runs changed;
// "trouble" and "well" when the page cannot be read and when it can again; "paused" when another tab took the place of the stream.
func (s *Server) events(w http.ResponseWriter, r *http.Request, one *session) {
	at, err := url.Parse(localPath(r.URL.Query().Get("view")))
	if err != nil || at.Path == "/events" {
		s.refuse(w, r, http.StatusBadRequest, "invalid view")
		return
	}
	page := r.Clone(r.Context())
	page.URL, page.RequestURI = at, at.RequestURI()

	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead { // has no body, so nothing would end the stream
		return
	}
	st := newStream()
	one.follow(st)
	defer one.unfollow(st)
	s.feed.add(st)
	defer s.feed.remove(st)

	out := &eventWriter{w: w, c: http.NewResponseController(w)}
	out.raw("retry: 1000\n\n")
	s.stream(r.Context(), page, one, st, out)
}

// stream sends events until the request, the session or the server ends.
func (s *Server) stream(ctx context.Context, page *http.Request, one *session, st *stream, out *eventWriter) {
	alive := time.NewTicker(aliveTime)
	defer alive.Stop()
	var sent [sha256.Size]byte
	var again <-chan time.Time // of a page that cannot be read
	wait := time.Duration(0)
	for out.err == nil {
		changed := st.take()
		v, location := s.render(page)
		if ctx.Err() != nil {
			return // what was rendered is the error of a call that was ended
		}
		if v.Status >= http.StatusBadRequest { // the page stays as it is, with what a person has typed
			if wait == 0 {
				text := "The database cannot be read."
				if v.Status != http.StatusServiceUnavailable {
					text = "The page cannot be updated: " + v.Failure + "."
				}
				out.event("trouble", map[string]any{"text": text})
			}
			wait = min(max(2*wait, firstRetry), lastRetry)
			again = time.After(wait)
		} else {
			if wait != 0 {
				out.event("well", map[string]any{})
			}
			wait, again = 0, nil
			st.show(v.Follow)
			if sum := sha256.Sum256([]byte(v.Title + "\x00" + string(v.Body))); sum != sent && location == "" && v.Raw == nil {
				sent = sum
				out.event("view", map[string]any{"title": v.Title, "html": string(v.Body), "changed": changed})
			}
		}
		pause := time.After(renderTime)
		wake := st.wake
		if v.Status == http.StatusServiceUnavailable {
			wake = nil
		}
		for rendered := false; !rendered; {
			select {
			case <-ctx.Done():
				return
			case <-s.ended.Done():
				return
			case <-one.ended:
				return
			case <-st.paused:
				out.event("paused", map[string]any{})
				return
			case <-alive.C:
				if one.expired() {
					return
				}
				out.raw(": \n\n")
				if out.err != nil {
					return
				}
			case <-again:
				rendered = true
			case <-wake:
				select {
				case <-pause:
				case <-ctx.Done():
					return
				case <-one.ended:
					return
				}
				rendered = true
			}
		}
	}
}

// eventWriter writes server-sent events.
type eventWriter struct {
	w   io.Writer
	c   *http.ResponseController
	n   int
	err error
}

func (e *eventWriter) event(name string, data map[string]any) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text) // ends with a line feed, and has no other
	enc.SetEscapeHTML(false)
	if err := enc.Encode(data); err != nil {
		e.err = err
		return
	}
	e.n++
	e.raw(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n", e.n, name, text.Bytes()))
}

func (e *eventWriter) raw(text string) {
	if e.err != nil {
		return
	}
	_ = e.c.SetWriteDeadline(time.Now().Add(sendTime)) // not every writer has deadlines
	if _, e.err = io.WriteString(e.w, text); e.err == nil {
		e.err = e.c.Flush()
	}
}
