package cli

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/history"
)

func TestWriteList(t *testing.T) {
	t.Parallel()
	page := history.ListPage{
		Executions: []history.Execution{
			{ID: "order-17", DefinitionName: "order", Phase: history.PhaseInterrupted, CurrentNodeID: "review", UpdatedAt: noon.Add(-time.Minute),
				Title: "Order 17 of Kim", Labels: map[string]string{"customer": "kim"}, Waits: []history.Wait{{Kind: history.WaitInterrupt, Prompt: "Ship it?"}}},
			{ID: "3f0c8a52-7d0e-4a3c-9a6e-0c7a1f7d2b11", Phase: history.PhaseCompleted, UpdatedAt: noon.Add(-50 * time.Hour)},
		},
		NextCursor: "2026-04-29T10:00:00.000Z|3f0c8a52",
	}
	a, stdout, stderr := newTestApp(t, nil, noon)
	rows := []listed{{Execution: page.Executions[0]}, {Execution: page.Executions[1]}}
	if err := a.writeList(rows, page.NextCursor, nil, nil); err != nil {
		t.Fatal(err)
	}
	requireGolden(t, "list", stdout.String()+stderr.String())

	stdout.Reset()
	if err := writeEncoded(stdout, encodeList(page, []failure{{}, {code: "TIMEOUT"}})); err != nil {
		t.Fatal(err)
	}
	requireGolden(t, "list_json", stdout.String())
}

// TestListFits: a list keeps to the width of the terminal, and its ids still name their runs.
func TestListFits(t *testing.T) {
	t.Parallel()
	execution := func(id, parent, name, title string, phase history.Phase, node string, waits ...history.Wait) history.Execution {
		return history.Execution{Waits: waits, ID: id, Parent: parent, DefinitionName: name, Title: title, Phase: phase, CurrentNodeID: node, UpdatedAt: noon.Add(-3 * time.Minute)}
	}
	rows := []listed{
		{Execution: execution("0190aaaa-1111-7000-8000-000000000001", "", "monthly-settlement-of-accounts", "", history.PhaseFailed, "collect_all_statements"), failure: failure{code: "ACTIVITY_OUTPUT_INVALID"}},
		{Execution: execution("0190aaaa-1111-7000-8000-000000000001:sub:pay", "0190aaaa-1111-7000-8000-000000000001", "payment", "", history.PhaseAwaitingActivity, "transfer"), depth: 1},
		{Execution: execution("order-17", "", "order", "Order 17 of Kim, who is in a hurry", history.PhaseInterrupted, "review", history.Wait{Kind: history.WaitInterrupt, Prompt: "Ship order 17 to Kim today, by courier?"})},
		{Execution: execution("order-18", "", "order", "", history.PhaseCompleted, "")},
	}
	for columns := 40; columns <= 200; columns++ {
		a, stdout, _ := newTestApp(t, nil, noon)
		a.columns = func() int { return columns }
		if err := a.writeList(rows, "", nil, nil); err != nil {
			t.Fatal(err)
		}
		requireFits(t, stdout.String(), columns)
		if isNarrow := columns < narrow; strings.Contains(stdout.String(), "TITLE") == isNarrow || isNarrow && !strings.Contains(stdout.String(), "order-17       Ord") {
			t.Errorf("%d columns:\n%s", columns, stdout)
		}
		if columns == 120 {
			requireGolden(t, "list_terminal", stdout.String())
		}
	}
}

// requireFits fails if a line has more characters than the terminal has columns.
func requireFits(t *testing.T, text string, columns int) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, " \n")); n > columns {
			t.Errorf("%d characters of %d: %s", n, columns, line)
		}
	}
}

func TestListQuery(t *testing.T) {
	t.Parallel()
	q, err := listOptions{phases: []string{"failed"}, labels: []string{"customer=17", "urgent"}, name: "order", newer: time.Hour, limit: 7}.query(noon)
	want := history.ListQuery{Phases: []history.Phase{history.PhaseFailed}, Labels: map[string]string{"customer": "17", "urgent": ""}, DefinitionName: "order", UpdatedAfter: noon.Add(-time.Hour), Limit: 7}
	if err != nil || !reflect.DeepEqual(q, want) {
		t.Errorf("got %+v, %v", q, err)
	}
	if q, err := (listOptions{open: true, limit: 1}).query(noon); err != nil || !reflect.DeepEqual(q.Phases, history.OpenPhases()) {
		t.Errorf("--open: %+v, %v", q, err)
	}
	for _, o := range []listOptions{
		{phases: []string{"failed", "done"}, limit: 1}, {limit: 0}, {limit: 101}, {open: true, phases: []string{"failed"}, limit: 1},
		{labels: []string{"=x"}, limit: 1}, {labels: []string{"a=1", "a=2"}, limit: 1},
	} {
		if _, err := o.query(noon); status(err) != exitUsage {
			t.Errorf("%+v: got %v", o, err)
		}
	}
}
