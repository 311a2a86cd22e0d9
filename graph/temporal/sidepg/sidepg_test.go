package sidepg_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/temporal/sidepg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	url, ctx, attempt := pgtest.Shared(t).URL(), t.Context(), "a\x00"+rand.Text()
	s, err := sidepg.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	again, err := sidepg.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	for _, err := range []error{
		s.PutBlob(ctx, "h", []byte("value")), again.PutBlob(ctx, "h", []byte("value")),
		s.AppendJournal(ctx, attempt, 0, [][]byte{[]byte("1"), []byte("2")}), again.AppendJournal(ctx, attempt, 2, [][]byte{[]byte("3")}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AppendJournal(ctx, attempt, 2, [][]byte{[]byte("4")}); !errors.Is(err, problem.HistoryConflict) {
		t.Errorf("a second writer: %v", err)
	}
	if v, err := again.GetBlob(ctx, "h"); err != nil || string(v) != "value" {
		t.Errorf("%q %v", v, err)
	}
	if _, err := s.GetBlob(ctx, "other"); !errors.Is(err, problem.StoreUnavailable) {
		t.Errorf("%v", err)
	}
	if entries, err := s.Journal(ctx, attempt); err != nil || string(bytes.Join(entries, []byte(","))) != "1,2,3" {
		t.Errorf("%q %v", entries, err)
	}
}
