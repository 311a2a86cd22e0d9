package cli

import (
	"reflect"
	"testing"
	"time"

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
	if err := a.writeList(stdout, page); err != nil {
		t.Fatal(err)
	}
	requireGolden(t, "list", stdout.String()+stderr.String())

	stdout.Reset()
	if err := writeEncoded(stdout, encodeList(page)); err != nil {
		t.Fatal(err)
	}
	requireGolden(t, "list_json", stdout.String())
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
