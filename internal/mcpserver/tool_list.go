package mcpserver

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

var phases = []string{"running", "completed", "failed", "interrupted", "awaiting_activity", "awaiting_signal", "cancelled"}

func listTool() *tool {
	return &tool{
		name:        "workflow_list",
		title:       "List workflow executions",
		description: "Lists runs: open ones first, the last changed first.",
		annotations: mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
		arguments: []property{
			optional("open", describe("boolean", "Runs not ended.")),
			optional("phase", members{{"anyOf", []members{choice(phases...), {{"type", "array"}, {"items", members{{"type", "string"}}}}}}, {"description", "One or several."}}),
			optional("roots", describe("boolean", "No subworkflows")),
			optional("unhandled", describe("boolean", "Not handled")),
			optional("label", str("key=value or key.")),
			optional("definition_name", aText("Of this definition.")),
			optional("updated_after", aText("Changed since (ISO 8601).")),
			optional("updated_before", aText("Changed by then.")),
			optional("limit", describe("integer", "Default 50.", "minimum", 1.0, "maximum", 100.0)),
			optional("cursor", aText("next_cursor.")),
		},
		answer: []property{
			required("executions", listOf(object([]property{
				required("execution_id", str("Run.")),
				required("phase", str("Its phase.")),
				optional("title", str("As at its start; labels too.")),
				optional("waits_for", str("In a few words.")),
				optional("age_s", describe("integer", "Since it last changed.")),
				optional("last_error", str("Why it failed or was cancelled.")),
				optional("next", obj("Newest open run: the call that shows how to continue it.")),
			}, false), "One page of runs.")),
			optional("next_cursor", str("Pass it as cursor for the next page; absent on the last.")),
		},
		invalid: problem.ValidationError,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			limit, _ := a.Get("limit").Whole(1, 100)
			q := history.ListQuery{
				Phases:         a.phases("phase"),
				Roots:          a.Get("roots").Bool(),
				Unhandled:      a.Get("unhandled").Bool(),
				Labels:         a.label("label"),
				DefinitionName: a.Get("definition_name").NonEmpty(),
				UpdatedAfter:   a.instant("updated_after"),
				UpdatedBefore:  a.instant("updated_before"),
				Limit:          int(limit),
				Cursor:         a.Get("cursor").NonEmpty(),
			}
			list := s.listOpenFirst
			if open := a.Get("open").Bool(); open && len(q.Phases) > 0 {
				a.Get("open").Fail("oneOf", "expected one of open and phase, found both")
			} else if open {
				q.Phases = history.OpenPhases()
			}
			if len(q.Phases) > 0 {
				list = s.List
			}
			if err := a.problem(); err != nil {
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

// phases reads one phase, or an array of them.
func (a *arguments) phases(name string) []history.Phase {
	v := a.Get(name)
	elements := []jsonobject.Value{v}
	if _, several := v.Plain.([]any); several {
		elements = v.Elements()
	}
	var list []history.Phase
	for _, e := range elements {
		status, _ := e.Plain.(string)
		if p := string(runjson.Phase(machine.Status(status))); p != status { // answers have more statuses than there are phases
			e.Fail("enum", "expected %s, found %q", problem.OrList(phases), status).Hint = "use the phase of runs with this status: " + p
			continue
		}
		if p := e.Choice(phases...); p != "" {
			list = append(list, history.Phase(p))
		}
	}
	return list
}

// label reads key=value, or a key alone.
func (a *arguments) label(name string) map[string]string {
	key, value, _ := strings.Cut(a.Get(name).NonEmpty(), "=")
	if key == "" {
		return nil
	}
	return map[string]string{key: value}
}

// afterOpen begins the cursor of a page after the open runs: the rest is the cursor in the list of ended runs.
const afterOpen = "ended|"

// listOpenFirst returns a page of runs, open runs before ended ones. A run that ends while a caller reads the
// pages comes first among the ended ones.
func (s *server) listOpenFirst(ctx context.Context, q history.ListQuery) (page history.ListPage, err error) {
	size, err := q.PageSize()
	if err != nil {
		return page, err
	}
	cursor, ended := strings.CutPrefix(q.Cursor, afterOpen)
	if !ended {
		cursor = ""
		q.Phases = history.OpenPhases()
		if page, err = s.List(ctx, q); err != nil || page.NextCursor != "" {
			return page, err
		}
	}
	left := size - len(page.Executions)
	q.Phases, q.Cursor, q.Limit = history.EndedPhases(), cursor, max(left, 1)
	rest, err := s.List(ctx, q)
	switch {
	case err != nil:
		return page, err
	case left > 0:
		page.Executions = append(page.Executions, rest.Executions...)
		if rest.NextCursor != "" {
			page.NextCursor = afterOpen + rest.NextCursor
		}
	case len(rest.Executions) > 0:
		page.NextCursor = afterOpen
	}
	return page, nil
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
		row.Put("next", call("workflow_status", members{{"execution_id", x.ID}}, "Shows in full what it waits for, and the call that ends the wait.").members())
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

// instantForms lists the forms of a time that list accepts: the protocol compares texts, so a date alone, or a year,
// stands for its beginning.
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
