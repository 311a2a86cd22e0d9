package mcpserver

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

var phases = []string{"running", "completed", "failed", "interrupted", "awaiting_activity", "awaiting_signal", "cancelled"}

func listTool() *tool {
	return &tool{
		name:        "workflow_list",
		title:       "List workflow executions",
		description: "Lists runs, the last changed first, in pages.",
		annotations: mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
		arguments: []property{
			optional("phase", oneOf("Only runs in this phase.", phases...)),
			optional("definition_name", aText("Only runs of this definition.")),
			optional("updated_after", aText("Changed at or after this time (ISO 8601).")),
			optional("updated_before", aText("Changed at or before this time.")),
			optional("limit", describe("integer", "Runs per page (default 50).", "minimum", 1.0, "maximum", 100.0)),
			optional("cursor", aText("next_cursor of the page before.")),
		},
		answer: []property{
			required("executions", listOf(object([]property{
				required("execution_id", str("The run.")),
				required("phase", oneOf("Where it stands.", phases...)),
				optional("definition_name", str("What runs.")),
				optional("updated_at", str("When it last changed (UTC).")),
				optional("current_node_id", str("Where it waits or stopped.")),
				optional("last_error", str("Why it failed or was cancelled.")),
				optional("parent_execution_id", str("The run that started it as a subworkflow.")),
			}, false), "One page of runs.")),
			optional("next_cursor", str("Pass it as cursor for the next page; absent on the last.")),
		},
		invalid: problem.ValidationError,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			limit, _ := a.Get("limit").Whole(1, 100)
			q := history.ListQuery{
				Phase:          history.Phase(a.Get("phase").Choice(phases...)),
				DefinitionName: a.Get("definition_name").NonEmpty(),
				UpdatedAfter:   a.instant("updated_after"),
				UpdatedBefore:  a.instant("updated_before"),
				Limit:          int(limit),
				Cursor:         a.Get("cursor").NonEmpty(),
			}
			if err := a.problem(); err != nil {
				return nil, err
			}
			page, err := s.List(ctx, q)
			if err != nil {
				return nil, err
			}
			// A page that is too large is asked for again with the runs that fit, for the cursor behind the last of them.
			if fits := fitting(page, a.answerBytes()); fits < len(page.Executions) {
				q.Limit = max(fits, 1)
				if page, err = s.List(ctx, q); err != nil {
					return nil, err
				}
			}
			return answerList(page), nil
		},
	}
}

// maxListedError is how many bytes of an error a row of the list has: a page has up to a hundred. Status has all of it.
const maxListedError = 300

// fitting is how many runs of a page fit in an answer.
func fitting(page history.ListPage, bytes int) int {
	if bytes == FullAnswers {
		return len(page.Executions)
	}
	bytes -= reserved // what is around them, the cursor too
	for i := range page.Executions {
		if bytes -= len(row(&page.Executions[i]).Append(nil)) + len(","); bytes < 0 {
			return i
		}
	}
	return len(page.Executions)
}

// row is a run of the list.
func row(x *history.Execution) members {
	short := *x
	short.LastError = problem.Excerpt(x.LastError, maxListedError)
	return runjson.Row(&short)
}

func answerList(page history.ListPage) *answer {
	entries := make([]members, len(page.Executions))
	for i := range page.Executions {
		entries[i] = row(&page.Executions[i])
	}
	content := members{{"executions", entries}}
	content.Text("next_cursor", page.NextCursor)
	return &answer{headline: "Listed " + count(len(entries), "execution") + ".", content: content}
}

// instantForms are the forms of a time that list takes: the protocol compares texts, so that a date alone, or a year,
// works as the beginning of it.
var instantForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly, "2006-01", "2006"}

func (a *arguments) instant(name string) time.Time {
	s := a.Get(name).NonEmpty()
	if s == "" {
		return time.Time{}
	}
	for _, form := range instantForms {
		if t, err := time.Parse(form, s); err == nil {
			return t.UTC()
		}
	}
	a.Get(name).Fail("format", "expected a time such as 2026-11-21T01:03:49Z, found %q", s)
	return time.Time{}
}
