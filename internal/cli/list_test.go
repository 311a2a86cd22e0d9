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
			{ID: "order-17", DefinitionName: "order", Phase: history.PhaseInterrupted, CurrentNodeID: "review", UpdatedAt: noon.Add(-time.Minute)},
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
	q, err := listOptions{phase: "failed", name: "order", newer: time.Hour, limit: 7}.query(noon)
	want := history.ListQuery{Phase: history.PhaseFailed, DefinitionName: "order", UpdatedAfter: noon.Add(-time.Hour), Limit: 7}
	if err != nil || !reflect.DeepEqual(q, want) {
		t.Errorf("got %+v, %v", q, err)
	}
	for _, o := range []listOptions{{phase: "done", limit: 1}, {limit: 0}, {limit: 101}} {
		if _, err := o.query(noon); status(err) != exitUsage {
			t.Errorf("%+v: got %v", o, err)
		}
	}
}
