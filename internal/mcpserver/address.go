package mcpserver

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/outline"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Answers refer to these documents of a run: awp://runs/ID/state, …/result, …/pending/WAIT and …/history/SEQ, each followed by a
// pointer.
const (
	stateSuffix  = "/state"
	resultSuffix = "/result"
	waitSuffix   = "/pending/"
	recordSuffix = histories + "/"
)

// address locates a value of a run.
type address struct {
	executionID string
	// document is stateSuffix, resultSuffix, waitSuffix or recordSuffix; key is the id of the pending entry or the number
	// of the record.
	document, key string
	pointer       string
}

// parseAddress reads the $ref of a reference with its pointer appended.
func parseAddress(uri string) (address, bool) {
	path, ok := strings.CutPrefix(uri, runPrefix)
	id, path, _ := strings.Cut(path, "/")
	name, pointer, _ := cutPointer(path)
	a := address{executionID: unescaped(id), document: "/" + name, pointer: pointer}
	if document := "/" + name + "/"; document == waitSuffix || document == recordSuffix {
		key, rest, _ := cutPointer(strings.TrimPrefix(pointer, "/"))
		a.document, a.key, a.pointer = document, unescaped(key), rest
	}
	return a, ok && (a.document == stateSuffix || a.document == resultSuffix || a.key != "")
}

// cutPointer cuts the first segment off; the pointer begins with its slash.
func cutPointer(path string) (segment, pointer string, found bool) {
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return path[:i], path[i:], true
	}
	return path, "", false
}

func unescaped(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// value returns the value at an address of a run.
func (s *server) value(ctx context.Context, run *view.Run, a address) (v any, in outline.Document, err error) {
	if a.executionID != run.ExecutionID {
		if run, err = s.Status(ctx, graph.StatusRequest{ExecutionID: a.executionID}); err != nil {
			return nil, in, err
		}
	}
	in = s.runDocument(run.ExecutionID, a.document)
	switch a.document {
	case stateSuffix:
		if v = map[string]any{}; stateOf(run) != nil {
			v = stateOf(run)
		}
	case resultSuffix:
		if run.Status != machine.Completed {
			return nil, in, fmt.Errorf("the run has no result: it is %s", runjson.Phase(run.Status))
		}
		v = run.Result
	case recordSuffix:
		in.URI += a.key
		if v, err = s.payload(ctx, run, a.key); err != nil {
			return nil, in, err
		}
	default:
		in.URI += url.PathEscape(a.key)
		if v = waitOf(run, a.key); v == nil {
			return nil, in, fmt.Errorf("the run no longer waits for %q", a.key)
		}
	}
	v, err = at(v, a.pointer)
	return v, in, err
}

// payload returns the payload of a record, with its secrets masked.
func (s *server) payload(ctx context.Context, run *view.Run, number string) (any, error) {
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq < 1 || seq > run.Seq {
		return nil, fmt.Errorf("the run has no record %q; its records are 1 to %d", problem.Excerpt(number, 40), run.Seq)
	}
	records, err := s.History(ctx, graph.HistoryRequest{ExecutionID: run.ExecutionID, FromSeq: seq, Limit: 1})
	if err != nil || len(records) == 0 {
		return nil, err
	}
	return jsonvalue.Decode(records[0].Raw)
}

func stateOf(run *view.Run) map[string]any {
	if run.Status.Terminal() {
		return run.FinalState
	}
	return run.State
}

// waitOf returns a pending entry with its state, nil if the run does not wait for it.
func waitOf(run *view.Run, id string) any {
	for i := range run.Pending {
		if p := &run.Pending[i]; p.ID == id {
			m := runjson.Pending(run, p, nil)
			if indexOf(m, "state") < 0 {
				m.Object("state", p.State)
			}
			v, _ := jsonvalue.Decode(m.Append(nil))
			return v
		}
	}
	return nil
}

// at follows a pointer (RFC 6901) into a value.
func at(v any, pointer string) (any, error) {
	if pointer != "" && pointer[0] != '/' {
		return nil, fmt.Errorf("the pointer %q must begin with /, as in /items/0", pointer)
	}
	read := ""
	for _, token := range jsonvalue.PointerTokens(pointer) {
		switch c := v.(type) {
		case map[string]any:
			next, ok := c[token]
			if !ok {
				hint := suggest.DidYouMean(token, jsonvalue.Keys(c))
				if hint == "" {
					hint = "read " + strconv.Quote(read) + " to list the fields"
				}
				return nil, fmt.Errorf("no field %q at %q: %s", token, read, hint)
			}
			v = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(c) {
				return nil, fmt.Errorf("the array at %q has the elements 0 to %d, not %q", read, len(c)-1, token)
			}
			v = c[i]
		default:
			return nil, fmt.Errorf("the value at %q is %s and has no parts; cut a string with select: .[0:4000]", read, jsonvalue.KindOf(v))
		}
		read += "/" + jsonvalue.EscapePointer(token)
	}
	return v, nil
}
