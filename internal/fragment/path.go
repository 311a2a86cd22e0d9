package fragment

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// RunPath returns the address of a run. http.ServeMux redirects the segments "", "." and ".." away, and takes an escaped "/" for the end of
// a path: these ids are in the query.
func RunPath(id string) string { return runPath(id, "", nil) }

// HistoryPath returns the address of a run's records from a seq on.
func HistoryPath(id string, from int64) string {
	if from <= 1 {
		return runPath(id, "history", nil)
	}
	return runPath(id, "history", url.Values{"from": {strconv.FormatInt(from, 10)}})
}

// StatePath returns the address of the state of a run at a record.
func StatePath(id string, seq int64) string {
	return runPath(id, "history", url.Values{"at": {strconv.FormatInt(seq, 10)}})
}

// GraphPath returns the address of a run's graph.
func GraphPath(id string) string { return runPath(id, "graph.svg", nil) }

// QuestionPath returns the address of a question; key is "<node>#<visit>".
func QuestionPath(id, key string) string {
	if plainSegment(id) {
		return "/runs/" + url.PathEscape(id) + "/questions/" + url.PathEscape(key)
	}
	return runPath(id, "questions", url.Values{"key": {key}})
}

// VisitPath returns the address of a visit of a node.
func VisitPath(id, node string, visit int) string {
	if plainSegment(id) && plainSegment(node) {
		return fmt.Sprintf("/runs/%s/visits/%s/%d", url.PathEscape(id), url.PathEscape(node), visit)
	}
	return "/run?" + url.Values{"id": {id}, "view": {"visits"}, "key": {node}, "n": {strconv.Itoa(visit)}}.Encode()
}

// ActPath returns the address of a POST about a run: "cancel", "signal", "fork", "retry" or "handle".
func ActPath(id, act string) string { return runPath(id, act, nil) }

// ValuePath returns the address of a whole value of a run as text: "state" or "result".
func ValuePath(id, name string) string { return runPath(id, "value", url.Values{"name": {name}}) }

// RecordPath returns the address of a whole value of a record as text: a field of its payload, or "" for all of it.
func RecordPath(id string, seq int64, field string) string {
	return runPath(id, "value", url.Values{"name": {field}, "seq": {strconv.FormatInt(seq, 10)}})
}

// WorkflowPath returns the address of a workflow by its name.
func WorkflowPath(name string) string {
	if plainSegment(name) {
		return "/workflows/" + url.PathEscape(name)
	}
	return "/workflow?" + url.Values{"name": {name}}.Encode()
}

// StartPath returns the address of the POST that starts a workflow.
func StartPath(name string) string {
	if plainSegment(name) {
		return "/workflows/" + url.PathEscape(name) + "/start"
	}
	return "/workflow/start?" + url.Values{"name": {name}}.Encode()
}

func runPath(id, view string, query url.Values) string {
	if !plainSegment(id) {
		q := url.Values{"id": {id}}
		if view != "" {
			q.Set("view", view)
		}
		for k, v := range query {
			q[k] = v
		}
		return "/run?" + q.Encode()
	}
	path := "/runs/" + url.PathEscape(id)
	if view != "" {
		path += "/" + view
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

// plainSegment reports whether a text can be a segment of a path.
func plainSegment(text string) bool {
	return text != "/" && (strings.Trim(text, ".") != "" || len(text) > 2)
}
