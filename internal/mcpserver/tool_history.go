package mcpserver

import (
	"context"
	"fmt"
	"math"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/outline"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

const (
	// usualRows is how many records a page has unless the call asks for another number, maxRows the most it can ask for.
	usualRows, maxRows = 25, 200
	// rowPayload is how many bytes of a payload a row shows at least.
	rowPayload = outline.MinBytes
)

func historyTool() *tool {
	return &tool{
		name:        "workflow_history",
		title:       "Read what happened in a run",
		description: "The records of a run in short rows, the newest page first; seq for one record whole.",
		annotations: mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
		arguments: []property{
			executionIDArgument,
			optional("seq", describe("integer", "This record alone.", "minimum", 1.0)),
			optional("from_seq", describe("integer", "First record of the page.", "minimum", 1.0)),
			optional("limit", describe("integer", "Records a page (default 25).", "minimum", 1.0, "maximum", float64(maxRows))),
			answerBytesArgument,
		},
		answer: []property{
			executionIDProperty,
			required("records", describe("array", "seq, kind, name, created_at, payload.")),
			required("total", describe("integer", "Records of the run.")),
			optional("earlier", obj("from_seq and limit of the page before.")),
			optional("later", obj("from_seq of the page behind.")),
		},
		invalid: problem.ValidationError,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			id := a.Require("execution_id").NonEmpty()
			seq, _ := a.Get("seq").Whole(1, math.MaxInt32)
			from, _ := a.Get("from_seq").Whole(1, math.MaxInt32)
			limit, set := a.Get("limit").Whole(1, maxRows)
			if !set {
				limit = usualRows
			}
			if err := a.problem(); err != nil {
				return nil, err
			}
			run, err := s.Status(ctx, graph.StatusRequest{ExecutionID: id})
			if err != nil {
				return nil, err
			}
			switch {
			case seq > 0:
				from, limit = seq, 1
			case from == 0:
				from = max(1, run.Seq-limit+1)
			}
			records, err := s.History(ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: from, Limit: int(limit)})
			if err != nil {
				return nil, err
			}
			if len(records) == 0 {
				return nil, problem.New(problem.ValidationError, "run %q has no record %d", id, from).WithHint("Its records are 1 to %d.", run.Seq)
			}
			states := &statesBefore{}
			if seq == 0 {
				if states, err = s.statesBefore(ctx, id, from); err != nil {
					return nil, err
				}
			}
			return s.page(run, records, limit, a.answerBytes(), states), nil
		},
	}
}

// page shows records in a number of bytes: as many as fit, each with as much of its payload as its share allows, and of a state what it
// changes.
func (s *server) page(run *graph.Run, records []history.Record, limit int64, bytes int, states *statesBefore) *answer {
	first := records[0].Seq
	content := members{{"execution_id", run.ExecutionID}, {"records", jsonvalue.Raw{}}, {"total", float64(run.Seq)}}
	if bytes == FullAnswers {
		bytes = math.MaxInt
	}
	room := bytes - len(content.Append(nil)) - reserved
	var rows []members
	for i := range records {
		r := &records[i]
		row := runjson.Record(r)
		if room -= len(row.Append(nil)) + len(`,"payload":,`); len(rows) > 0 && room < rowPayload {
			break
		}
		payload, err := jsonvalue.Decode(r.Raw)
		if err != nil {
			payload = map[string]any{}
		}
		in := s.runDocument(run.ExecutionID, fmt.Sprintf("%s/%d", histories, r.Seq))
		share := rowPayload
		if len(records) == 1 {
			share = room
		}
		text := states.show(in, r, payload, min(share, room))
		row.Put("payload", text)
		room -= len(text)
		rows = append(rows, row)
	}
	content[1].Value = rows
	last := first + int64(len(rows)) - 1
	var more []string
	if first > 1 {
		n := min(limit, first-1)
		earlier := members{{"from_seq", float64(first - n)}, {"limit", float64(n)}}
		content.Put("earlier", earlier)
		more = append(more, fmt.Sprintf("Earlier ones: workflow_history with %s.", earlier.Append(nil)))
	}
	if last < run.Seq {
		later := members{{"from_seq", float64(last + 1)}}
		content.Put("later", later)
		more = append(more, fmt.Sprintf("Later ones: workflow_history with %s.", later.Append(nil)))
	}
	headline := fmt.Sprintf("Records %d to %d of %d of execution %s.", first, last, run.Seq, shownID(run.ExecutionID))
	if first == last {
		headline = fmt.Sprintf("Record %d of %d of execution %s.", first, run.Seq, shownID(run.ExecutionID))
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = string(row.Append(nil))
	}
	return &answer{headline: headline, lines: append(lines, more...), content: content}
}
