package arrival

import (
	"context"
	"fmt"
	"testing"
)

// TestSince: a call is overtaken by an answer to its run, or to another run of the tree, that was recorded after the call arrived.
func TestSince(t *testing.T) {
	t.Parallel()
	var a Answers
	before := Now()
	a.Recorded("r:sub:v")
	after := With(context.Background(), Now())
	a.Recorded("other")
	for id, want := range map[string]bool{"r": true, "r:sub:v": true, "r:sub:w": true, "unknown": false} {
		if got := a.Since(id, before); got != want {
			t.Errorf("before: %s %v", id, got)
		}
		if a.Since(id, Of(after)) {
			t.Errorf("after: %s was answered since", id)
		}
	}
	if !a.Since("other", Of(after)) {
		t.Error("a context keeps its mark")
	}
	if a.Since("other", Of(context.Background())) {
		t.Error("a context without a mark is that of a call that arrives now")
	}
}

// TestRecentAnswersAreKept: the last answers count, however often and for however many runs answers came before.
func TestRecentAnswersAreKept(t *testing.T) {
	t.Parallel()
	var a Answers
	for range 2 * maxAnswers {
		a.Recorded("busy")
	}
	mark := Now()
	a.Recorded("busy")
	for i := range maxAnswers - 1 {
		a.Recorded(fmt.Sprint("run ", i))
	}
	if !a.Since("busy", mark) || !a.Since("run 0", mark) {
		t.Error("a recent answer is lost")
	}
	for i := range maxAnswers {
		a.Recorded(fmt.Sprint("later run ", i))
	}
	if len(a.last) != maxAnswers || len(a.recent) != maxAnswers {
		t.Errorf("%d runs and %d answers are kept", len(a.last), len(a.recent))
	}
}
