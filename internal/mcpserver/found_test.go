package mcpserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// ids lists the runs of an answer of workflow_list.
func ids(page map[string]any) (list []string) {
	for _, x := range page["executions"].([]any) {
		list = append(list, x.(map[string]any)["execution_id"].(string))
	}
	return list
}

// TestARunThatWaitsIsFound: sixty runs that ended later do not hide one that waits, on pages of any size.
func TestARunThatWaitsIsFound(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := newHost(t, graph.Options{DefaultMode: machine.HostMediated, Now: func() time.Time { now = now.Add(time.Millisecond); return now }})
	step := definitionFile(t, "step")
	for _, id := range []string{"waits", "waits too"} {
		h.ok("workflow_start", object{
			"definition": step, "execution_id": id, "title": "Refund " + id, "labels": object{"customer": "17", "kind": id},
		})
	}
	for i := range 60 {
		id := fmt.Sprintf("done %02d", i)
		h.ok("workflow_start", object{"definition_ref": "step", "execution_id": id, "labels": object{"customer": "18"}})
		h.ok("workflow_submit_activity", object{"execution_id": id, "node_id": "work", "outcome": object{"ok": true}})
	}
	page := h.ok("workflow_list", object{"limit": 3})
	if got := ids(page); !slices.Equal(got, []string{"waits too", "waits", "done 59"}) {
		t.Errorf("the first page has %q", got)
	}
	first := at(t, page, "executions", 0).(map[string]any)
	want(t, first, object{"title": "Refund waits too", "labels": object{"customer": "17", "kind": "waits too"}, "waits_for": "step work"})
	if _, ok := first["age_s"].(float64); !ok || page["now"] == nil {
		t.Errorf("no age in %v, or no time in %v", first, page)
	}
	want(t, at(t, page, "executions", 1).(map[string]any), object{"next": nil})
	want(t, h.ok(at(t, first, "next", "tool").(string), at(t, first, "next", "arguments").(map[string]any)), object{
		"execution_id": "waits too", "title": "Refund waits too",
	})
	for _, limit := range []int{1, 2, 7, 61, 62, 100} {
		var all []string
		args := object{"limit": limit}
		for len(all) <= 62 {
			page := h.ok("workflow_list", args)
			all = append(all, ids(page)...)
			if args["cursor"] = page["next_cursor"]; page["next_cursor"] == nil {
				break
			}
		}
		if len(all) != 62 || all[1] != "waits" || all[2] != "done 59" || all[61] != "done 00" {
			t.Errorf("pages of %d: %q", limit, all)
		}
	}
	for _, c := range []struct {
		args object
		want []string
	}{
		{object{"open": true}, []string{"waits too", "waits"}},
		{object{"label": "customer=17"}, []string{"waits too", "waits"}},
		{object{"label": "kind"}, []string{"waits too", "waits"}},
		{object{"label": "kind=waits", "open": true}, []string{"waits"}},
		{object{"label": "customer=18", "open": true}, nil},
		{object{"label": "customer=18", "limit": 1}, []string{"done 59"}},
		{object{"phase": []any{"awaiting_activity", "failed"}}, []string{"waits too", "waits"}},
		{object{"phase": []any{"awaiting_activity", "completed"}, "limit": 1}, []string{"done 59"}},
		{object{"phase": "awaiting_activity"}, []string{"waits too", "waits"}},
	} {
		if got := ids(h.ok("workflow_list", c.args)); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.args, got, c.want)
		}
	}
	if text := h.raw("workflow_list", object{"open": true}).text; !strings.Contains(text, "\nwaits awaiting_activity, Refund waits, step work") {
		t.Errorf("the text is %q", text)
	}
	for _, args := range []object{
		{"open": true, "phase": "failed"}, {"phase": []any{"failed", "done"}}, {"phase": 7}, {"label": ""}, {"open": true, "cursor": "ended|"}, {"cursor": "ended|x"},
	} {
		h.refused("VALIDATION_ERROR", "workflow_list", args)
	}
	for _, args := range []object{
		{"title": "two\nlines"}, {"labels": object{"a=b": "c"}}, {"labels": object{"a": 1}}, {"labels": []any{"a"}},
	} {
		args["definition_ref"] = "step"
		h.refused("VALIDATION_ERROR", "workflow_start", args)
	}
}

// TestAListNamesRunsWithoutATitle: the text of a list has the definition's name where a run has no title.
func TestAListNamesRunsWithoutATitle(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{DefaultMode: machine.HostMediated})
	h.ok("workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": "r"})
	if r := h.raw("workflow_list", object{}); !contains(r.text, "\nr awaiting_activity, step, ") {
		t.Errorf("%s", r.text)
	}
}
