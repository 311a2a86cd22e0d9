package page

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// pageOfRuns is the number of runs on a page of a list.
const pageOfRuns = 100

// runsView shows a page of runs.
func (s *Server) runsView(r *http.Request) (view, error) {
	q := r.URL.Query()
	query, err := listQuery(q)
	if err != nil {
		return view{}, err
	}
	page, err := s.o.Engine.List(r.Context(), query)
	if err != nil {
		return view{}, err
	}
	list := &fragment.RunList{
		Definition: q.Get("definition"), Label: strings.Join(q["label"], ","), Below: q.Get("below"), After: q.Get("after"), Before: q.Get("before"),
		Active: activeFilters(q),
	}
	for _, p := range history.Phases() {
		list.Phases = append(list.Phases, fragment.Choice{Value: string(p), Text: fragment.PhaseState(p).Word, Selected: q.Get("phase") == string(p)})
	}
	v := view{Title: "Runs", Follow: []string{}}
	for i := range page.Executions {
		list.Rows = append(list.Rows, row(&page.Executions[i]))
		v.Follow = append(v.Follow, page.Executions[i].ID)
	}
	if page.NextCursor != "" {
		list.Older = runsPath(q, "cursor", page.NextCursor)
	}
	if q.Get("cursor") != "" {
		list.Newest = runsPath(q, "cursor", "")
	} else {
		v.Follow = nil // new runs come first
	}
	v.Body, err = s.body(list)
	return v, err
}

// listQuery reads the filters of a list.
func listQuery(q url.Values) (history.ListQuery, error) {
	list := history.ListQuery{
		DefinitionName: q.Get("definition"), Phase: history.Phase(q.Get("phase")), Below: q.Get("below"), Cursor: q.Get("cursor"), Limit: pageOfRuns,
	}
	var err error
	if list.UpdatedAfter, err = moment(q.Get("after"), "after"); err != nil {
		return list, err
	}
	if list.UpdatedBefore, err = moment(q.Get("before"), "before"); err != nil {
		return list, err
	}
	for _, l := range labelsOf(q) {
		name, value, _ := strings.Cut(l, "=")
		if list.Labels == nil {
			list.Labels = map[string]string{}
		}
		list.Labels[name] = value
	}
	return list, nil
}

// labelsOf returns the filters by label, "name=value" or "name".
func labelsOf(q url.Values) (list []string) {
	for _, l := range q["label"] {
		if l = strings.TrimSpace(l); l != "" {
			list = append(list, l)
		}
	}
	return list
}

// moment reads a day or a time; "" is the zero time.
func moment(text, name string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, problem.New(problem.ValidationError, "invalid time %q for %q", text, name).WithHint("Write a day, such as 2026-01-31, or a time, such as 2026-01-31T15:04:05Z.")
}

// runsPath returns the address of the list with one filter changed; "" removes it.
func runsPath(q url.Values, name, value string) string {
	q = maps.Clone(q)
	for k, list := range q {
		if list = slices.DeleteFunc(slices.Clone(list), func(v string) bool { return v == "" }); len(list) == 0 {
			delete(q, k)
		} else {
			q[k] = list
		}
	}
	if name != "cursor" {
		q.Del("cursor")
	}
	if q.Del(name); value != "" {
		q.Set(name, value)
	}
	if len(q) == 0 {
		return "/runs"
	}
	return "/runs?" + q.Encode()
}

// activeFilters returns a link for each filter, which removes it.
func activeFilters(q url.Values) (list []fragment.Link) {
	for _, f := range []struct{ name, text string }{
		{"definition", "workflow "}, {"phase", "state "}, {"label", "label "}, {"below", "below "}, {"after", "changed after "}, {"before", "changed before "},
	} {
		value := strings.Join(q[f.name], ", ")
		if f.name == "phase" && value != "" {
			value = fragment.PhaseState(history.Phase(value)).Word
		}
		if value != "" {
			list = append(list, fragment.Link{Text: f.text + value, Path: runsPath(q, f.name, "")})
		}
	}
	return list
}

// row returns the row of a run.
func row(x *history.Execution) fragment.Row {
	out := fragment.Row{
		ID: x.ID, Title: x.Title, Workflow: x.DefinitionName, State: fragment.RowState(x), WaitsFor: runjson.WaitsFor(x), Changed: x.UpdatedAt,
		Error: problem.ClipRunes(strings.Join(strings.Fields(x.LastError), " "), maxRowText),
	}
	if len(x.Waits) == 1 && !x.Waits[0].Due.IsZero() && time.Since(x.Waits[0].Due) > overdueAfter { // no process performs it
		out.WaitsFor = strings.Replace(out.WaitsFor, "until ", "overdue since ", 1)
	}
	if h := x.Lineage.Handled; h != nil {
		out.Handled = "handled"
		if h.Retry != "" {
			out.Handled = "a retry completed"
		}
	}
	return out
}

// overdueAfter is how late a process may be for a timer.
const overdueAfter = time.Minute

// maxRowText is the largest number of characters of an error in a list.
const maxRowText = 160
