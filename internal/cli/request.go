package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// requestText describes a request in one line: the item of a map, the model and the last message, the tool and its arguments. With wholeWidth
// it is the whole request, as JSON.
func requestText(request map[string]any, width int) string {
	if len(request) == 0 {
		return ""
	}
	if width == wholeWidth {
		return short(request, width)
	}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if item, ok := request["item"].(float64); ok {
		add("item %d", int(item)+1) // people count from 1
	}
	if value, ok := request["value"]; ok {
		add("%s", short(value, width))
	}
	if model, ok := request["model"].(string); ok {
		add("%s", model)
	}
	if tool, ok := request["tool"].(string); ok {
		server, _ := request["server"].(string)
		add("%s.%s", server, tool)
	}
	if arguments, ok := request["arguments"].(map[string]any); ok && len(arguments) > 0 {
		add("%s", short(arguments, width))
	}
	if text := lastMessage(request); text != "" {
		add("%s", short(text, width))
	}
	if endpoint, ok := request["endpoint"].(string); ok {
		add("at %s", endpoint)
	}
	if len(parts) == 0 {
		return short(request, width)
	}
	return strings.Join(parts, " ")
}

// lastMessage is the text of the last message to a model.
func lastMessage(request map[string]any) string {
	messages, _ := request["messages"].([]any)
	if len(messages) == 0 {
		return ""
	}
	last, _ := messages[len(messages)-1].(map[string]any)
	if last["content_from"] == "state" {
		return "(the state)"
	}
	text, _ := last["content"].(string)
	return text
}

// maxRequestSearch limits the records searched for the request of an attempt.
const maxRequestSearch = 1000

// maxRequestsShown limits the attempts whose request the status of a run shows.
const maxRequestsShown = 20

// requestsOf finds the requests of the first pending attempts of a run, by the ids of its waits. Requests before the newest records are left
// out.
func (s *session) requestsOf(ctx context.Context, run *view.Run) (map[string]*history.Record, error) {
	requests := map[string]*history.Record{}
	wanted := map[string][]*view.Pending{}
	for i := range min(len(run.Pending), maxRequestsShown) {
		p := &run.Pending[i]
		if !p.Host && !p.Queued && (p.Kind == machine.WaitActivity || p.Kind == machine.WaitDelegate) {
			wanted[p.ExecutionID] = append(wanted[p.ExecutionID], p)
		}
	}
	for id, pending := range wanted {
		if err := s.findRequests(ctx, id, pending, requests); err != nil {
			return nil, err
		}
	}
	return requests, nil
}

// findRequests searches the newest records first for the requests of attempts of one run, until it has met all of them: an attempt without
// a recorded request has no earlier one.
func (s *session) findRequests(ctx context.Context, id string, wanted []*view.Pending, requests map[string]*history.Record) error {
	execution, err := s.store.Execution(ctx, id)
	if err != nil {
		return err
	}
	for last := execution.Seq; len(wanted) > 0 && last > max(execution.Seq-maxRequestSearch, 0); last -= recordPage {
		from := max(last-recordPage+1, 1)
		records, err := s.engine.History(ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: from, Limit: int(last - from + 1)})
		if err != nil {
			return err
		}
		for i := range slices.Backward(records) {
			r := &records[i]
			if r.Name != history.ActivityRequested {
				continue
			}
			q := &r.Payload
			at := slices.IndexFunc(wanted, func(p *view.Pending) bool {
				return q.NodeID == p.NodeID && max(q.Visit, 1) == p.Visit && max(q.Attempt, 1) == p.Attempt
			})
			if at < 0 {
				continue
			}
			if len(q.Request) > 0 {
				requests[wanted[at].ID] = r
			}
			wanted = slices.Delete(wanted, at, at+1)
		}
	}
	return nil
}

// stateTrail holds the newest state of the records read so far, to show the changes of the next one.
type stateTrail struct{ last map[string]any }

// apply takes the next record.
func (s *stateTrail) apply(r *history.Record) {
	if r.Name == history.StateUpdated {
		s.last = r.Payload.State
	}
}

// text returns the changes of a state, or the whole state with wholeWidth or if it is the first. It becomes the newest state.
func (s *stateTrail) text(state map[string]any, width int) string {
	before := s.last
	s.last = state
	if before == nil || width == wholeWidth {
		return short(state, width)
	}
	var parts []string
	for _, c := range runjson.Changes(before, state) {
		name := strings.TrimPrefix(c.Pointer, "/")
		if c.Gone {
			parts = append(parts, "-"+name)
		} else {
			parts = append(parts, name+"="+short(c.Value, width))
		}
	}
	if len(parts) == 0 {
		return "(unchanged)"
	}
	return strings.Join(parts, " ")
}
