package mcpserver

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

func listTool() *tool {
	return &tool{
		name:        "workflow_list",
		title:       "List workflow executions",
		description: "Lists runs: open ones first, the last changed first.",
		annotations: mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
		arguments:   calls.ListArguments(),
		answer:      calls.ListAnswer(),
		invalid:     problem.ValidationError,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			q, list := a.List(), func(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
				return calls.ListOpenFirst(ctx, s.Engine, q)
			}
			if len(q.Phases) > 0 {
				list = s.List
			}
			if err := a.Problem(); err != nil {
				return nil, err
			}
			page, err := list(ctx, q)
			if err != nil {
				return nil, err
			}
			shown := listed{ListPage: page, first: q.Cursor == "", now: time.Now()}
			// A page that is too large is asked for again with the runs that fit, for the cursor behind the last of them.
			if fits := shown.fitting(a.answerBytes()); fits < len(page.Executions) {
				q.Limit = max(fits, 1)
				if shown.ListPage, err = list(ctx, q); err != nil {
					return nil, err
				}
			}
			return shown.answer(), nil
		},
	}
}

// maxListedError is how many bytes of an error a row of the list has: a page has up to a hundred. Status has all of it.
const maxListedError = 300

// listed is a page of the list as an answer shows it.
type listed struct {
	history.ListPage
	// first is set on the first page.
	first bool
	now   time.Time
}

// fitting returns how many runs of a page fit in an answer.
func (l *listed) fitting(bytes int) int {
	if bytes == FullAnswers {
		return len(l.Executions)
	}
	bytes -= reserved // for the text around the rows, the cursor too
	for i := range l.Executions {
		if bytes -= len(l.row(i).Append(nil)) + len(","); bytes < 0 {
			return i
		}
	}
	return len(l.Executions)
}

// row shows a run of the list. The newest open one has the call that continues it.
func (l *listed) row(i int) members {
	x := l.Executions[i]
	x.LastError = problem.Excerpt(x.LastError, maxListedError)
	if h := x.Lineage.Handled; h != nil {
		short := *h
		short.Note = problem.Excerpt(h.Note, maxListedError)
		x.Lineage.Handled = &short
	}
	row := runjson.Row(&x)
	row.Put("age_s", math.Floor(max(0, l.now.Sub(x.UpdatedAt).Seconds())))
	if i == 0 && l.first && !x.Phase.Terminal() {
		row.Put("next", call("workflow_status", members{{"execution_id", x.ID}}, "Shows the waits in full, and the call that ends each.").members())
	}
	return row
}

func (l *listed) answer() *answer {
	entries := make([]members, len(l.Executions))
	var lines []string
	for i := range l.Executions {
		x := &l.Executions[i]
		entries[i] = l.row(i)
		if i < maxWaitLines {
			line := shownID(x.ID) + " " + string(x.Phase)
			for _, more := range []string{cmp.Or(x.Title, x.DefinitionName), runjson.WaitsFor(x)} {
				if more != "" {
					line += ", " + more
				}
			}
			lines = append(lines, line)
		}
	}
	if more := len(l.Executions) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more.", more))
	}
	content := members{{"executions", entries}}
	content.Instant("now", l.now)
	content.Text("next_cursor", l.NextCursor)
	return &answer{headline: "Listed " + count(len(entries), "execution") + ".", lines: lines, content: content}
}
