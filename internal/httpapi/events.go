package httpapi

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// pingEvery is how often a stream without events gets a comment, so that proxies keep it open.
const pingEvery = 15 * time.Second

// stream is an open event stream.
type stream struct {
	s   *Server
	w   http.ResponseWriter
	ctx context.Context
}

// streams counts the open event streams, and those of each caller with a name.
type streams struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

func (ss *streams) add(caller string) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	switch {
	case ss.all >= maxStreams:
		return tooMany("%d event streams are open, as many as there can be", maxStreams)
	case caller != "" && ss.of[caller] >= maxCallerStreams:
		return tooMany("%q has %d open event streams, as many as one token can have", caller, maxCallerStreams)
	case ss.of == nil:
		ss.of = map[string]int{}
	}
	ss.all++
	ss.of[caller]++
	return nil
}

func (ss *streams) remove(caller string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.all--
	if ss.of[caller]--; ss.of[caller] == 0 {
		delete(ss.of, caller)
	}
}

// open begins an event stream, which ends with the request or the server. done must be called unless there is an error.
func (s *Server) open(r *request) (st *stream, done func(), err error) {
	caller := r.Context().Value(callerKey{}).(httpguard.Caller)
	if err := s.streams.add(caller.Name); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	if r.Method == http.MethodHead { // the answer has no body, so the client would not end the stream
		cancel()
	}
	if s.Stop != nil {
		go func() {
			select {
			case <-s.Stop:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	r.w.Header().Set("Content-Type", "text/event-stream")
	r.w.Header().Set("X-Accel-Buffering", "no") // proxies must not buffer
	r.w.WriteHeader(http.StatusOK)
	st = &stream{s, r.w, ctx}
	return st, func() { cancel(); s.streams.remove(caller.Name) }, nil
}

// begin is the beginning of a stream: clients come again a second after it has broken.
const begin = "retry: 1000\n\n"

func (st *stream) write(text string) error {
	if _, err := st.w.Write([]byte(text)); err != nil {
		return err
	}
	return http.NewResponseController(st.w).Flush()
}

// event sends an event. A JSON text has no line ends.
func (st *stream) event(id int64, name string, data jsonvalue.Ordered) error {
	return st.write(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", id, name, st.s.Redaction.Text(data.Append(nil))))
}

// events answers with a page of records, or streams them.
func (s *Server) events(r *request) (*result, error) {
	from, _ := r.Get("from_seq").Whole(1, math.MaxInt32)
	to, bounded := r.Get("to_seq").Whole(1, math.MaxInt32)
	limit, set := r.Get("limit").Whole(1, maxPage)
	if !set {
		limit = usualPage
	}
	cursor := r.Get("cursor").NonEmpty()
	if err := r.Problem(); err != nil {
		return nil, err
	}
	if cursor != "" {
		seq, err := strconv.ParseInt(cursor, 10, 32)
		if err != nil || seq < 1 {
			return nil, problem.New(problem.InvalidListCursor, "invalid cursor %q", cursor).WithHint("Use next_cursor of the previous page.")
		}
		from = seq
	}
	from = max(from, 1)
	run, err := s.Engine.Status(r.Context(), graph.StatusRequest{ExecutionID: r.id})
	if err != nil {
		return nil, err
	}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		if last, err := strconv.ParseInt(r.Header.Get("Last-Event-Id"), 10, 64); err == nil && last >= 0 {
			from = max(from, last+1)
		}
		st, done, err := s.open(r)
		if err != nil {
			return nil, err
		}
		defer done()
		if st.write(begin) != nil {
			return nil, nil
		}
		st.records(r.id, from)
		return nil, nil
	}
	if !bounded {
		to = run.Seq
	}
	to = min(to, run.Seq)
	list := []jsonvalue.Ordered{}
	if from <= to {
		records, err := s.Engine.History(r.Context(), graph.HistoryRequest{ExecutionID: r.id, FromSeq: from, Limit: int(min(limit, to-from+1))})
		if err != nil {
			return nil, err
		}
		for i := range records {
			list = append(list, encodeRecord(r.id, &records[i]))
		}
	}
	body := jsonvalue.Ordered{{"execution_id", r.id}, {"events", list}}
	if next := from + int64(len(list)); len(list) > 0 && next <= to {
		body.Text("next_cursor", strconv.FormatInt(next, 10))
	}
	return ok(body)
}

// records sends the records of a run from a seq on, as they come, until the run has ended.
func (st *stream) records(id string, from int64) {
	for st.ctx.Err() == nil {
		records, err := st.s.Engine.History(st.ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: from, Limit: maxPage})
		if err != nil {
			st.fail(err)
			return
		}
		for i := range records {
			if st.event(records[i].Seq, "record", encodeRecord(id, &records[i])) != nil {
				return
			}
			from = records[i].Seq + 1
		}
		if len(records) > 0 {
			continue
		}
		run, err := st.s.Engine.Status(st.ctx, graph.StatusRequest{ExecutionID: id, Since: max(from-1, 1), Wait: &graph.Wait{Limit: pingEvery, End: st.s.Stop}})
		switch {
		case err != nil:
			st.fail(err)
			return
		case run.Status.Terminal() && run.Seq < from:
			_ = st.event(from-1, "end", jsonvalue.Ordered{{"execution_id", id}, {"status", string(run.Status)}, {"seq", float64(run.Seq)}})
			return
		case run.Seq < from && st.write(": \n\n") != nil:
			return
		}
	}
}

// fail ends a stream with an error, unless the client or the server has ended it.
func (st *stream) fail(err error) {
	if e, coded := problem.As(err); coded && st.ctx.Err() == nil {
		_ = st.write(fmt.Sprintf("event: error\ndata: %s\n\n", st.s.Redaction.Text(encodeError(e).Append(nil))))
	}
}

// changes streams which runs have changed. Several changes of a run may become one event.
func (s *Server) changes(r *request) (*result, error) {
	if err := r.Problem(); err != nil {
		return nil, err
	}
	follower, err := graph.Need[graph.Follower](s.Engine, "following runs")
	if err != nil {
		return nil, err
	}
	st, done, err := s.open(r)
	if err != nil {
		return nil, err
	}
	defer done()
	if st.write(begin) != nil {
		return nil, nil
	}
	var mu sync.Mutex
	changed, some := map[string]int64{}, make(chan struct{}, 1)
	followed := make(chan error, 1)
	go func() {
		followed <- follower.Follow(st.ctx, func(id string, seq int64) {
			mu.Lock()
			changed[id] = max(changed[id], seq)
			mu.Unlock()
			select {
			case some <- struct{}{}:
			default:
			}
		})
	}()
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for n := int64(1); ; {
		select {
		case <-some:
			mu.Lock()
			now := changed
			changed = map[string]int64{}
			mu.Unlock()
			for _, id := range slices.Sorted(maps.Keys(now)) {
				if st.event(n, "change", jsonvalue.Ordered{{"execution_id", id}, {"seq", float64(now[id])}}) != nil {
					return nil, nil
				}
				n++
			}
		case <-ping.C:
			if st.write(": \n\n") != nil {
				return nil, nil
			}
		case err := <-followed:
			if err != nil {
				st.fail(err)
			}
			return nil, nil
		}
	}
}
