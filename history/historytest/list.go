package historytest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// fillList makes runs with the given last times, in milliseconds after Begin.
func fillList(t *testing.T, s history.Store, runs []listed) {
	t.Helper()
	for _, r := range runs {
		x := NewTrace(t, r.id)
		x.Now = Begin.Add(time.Duration(r.at) * time.Millisecond)
		x.Append(s, r.lines...)
	}
}

type listed struct {
	id    string
	at    int
	lines []string
}

// pages reads all pages of a query.
func pages(t *testing.T, s history.Store, q history.ListQuery) [][]string {
	t.Helper()
	const most = 1000 // more means an endless loop
	whole := q.Cursor == ""
	var out [][]string
	for {
		page := got[history.ListPage](t)(s.List(t.Context(), q))
		var ids []string
		for _, e := range page.Executions {
			ids = append(ids, e.ID)
		}
		out = append(out, ids)
		if q.Cursor = page.NextCursor; q.Cursor == "" || len(out) > most {
			if whole {
				wantCount(t, s, q, len(slices.Concat(out...)))
			}
			return out
		}
	}
}

// wantCount compares the number of runs that a query selects.
func wantCount(t *testing.T, s history.Store, q history.ListQuery, want int) {
	t.Helper()
	for _, most := range []int{0, 1, want, want + 1, 1000} {
		if n := got[int](t)(s.Count(t.Context(), q, most)); n != min(want, most) {
			t.Errorf("%+v: got a count of %d with at most %d, want %d", q, n, most, min(want, most))
		}
	}
}

func wantPages(t *testing.T, s history.Store, q history.ListQuery, want string) {
	t.Helper()
	if got := fmt.Sprint(pages(t, s, q)); got != want {
		t.Errorf("%+v:\n got %s\nwant %s", q, got, want)
	}
}

// listPages: newest first, equal times in bytewise order of ids, on every page.
func listPages(t *testing.T, s history.Store) {
	wantPages(t, s, history.ListQuery{}, "[[]]")
	started := []string{"E ExecutionStarted"}
	fillList(t, s, []listed{
		{"_", 5, started}, {"é", 5, started}, {"b", 5, started}, {"B", 5, Start("w", "in_process")}, {"-", 5, lines(Start("w", "in_process"), End())},
		{"a|1", 5, started}, {"old", 1, started}, {"new", 9, lines(Start("w", "in_process"), End())},
	})
	wantPages(t, s, history.ListQuery{}, "[[new - B _ a|1 b é old]]")
	wantPages(t, s, history.ListQuery{Limit: 8}, "[[new - B _ a|1 b é old]]")
	wantPages(t, s, history.ListQuery{Limit: 7}, "[[new - B _ a|1 b é] [old]]")
	wantPages(t, s, history.ListQuery{Limit: 3}, "[[new - B] [_ a|1 b] [é old]]")
	wantPages(t, s, history.ListQuery{Limit: 1}, "[[new] [-] [B] [_] [a|1] [b] [é] [old]]")
	wantPages(t, s, history.ListQuery{Oldest: true}, "[[old - B _ a|1 b é new]]")
	wantPages(t, s, history.ListQuery{Oldest: true, Limit: 3}, "[[old - B] [_ a|1 b] [é new]]")
	wantPages(t, s, history.ListQuery{Oldest: true, Limit: 1}, "[[old] [-] [B] [_] [a|1] [b] [é] [new]]")
	wantPages(t, s, history.ListQuery{Oldest: true, Phase: history.PhaseCompleted}, "[[- new]]")
	page := got[history.ListPage](t)(s.List(t.Context(), history.ListQuery{Limit: 2}))
	if want := "2026-11-21T01:00:00.005Z|-"; page.NextCursor != want {
		t.Errorf("the cursor is %q, want %q", page.NextCursor, want)
	}
	page = got[history.ListPage](t)(s.List(t.Context(), history.ListQuery{Limit: 2, Oldest: true}))
	if want := "oldest|2026-11-21T01:00:00.005Z|-"; page.NextCursor != want {
		t.Errorf("the cursor is %q, want %q", page.NextCursor, want)
	}
	wantPages(t, s, history.ListQuery{Oldest: true, Cursor: "oldest|2026-11-21T01:00:00.005Z|a"}, "[[a|1 b é new]]")
	wantPages(t, s, history.ListQuery{Oldest: true, Cursor: "oldest|1999-01-01T00:00:00.000Z|a"}, "[[old - B _ a|1 b é new]]")
	wantPages(t, s, history.ListQuery{Oldest: true, Cursor: "oldest|2999-01-01T00:00:00.000Z|a"}, "[[]]")
	// A cursor stays valid after its run has moved on.
	wantPages(t, s, history.ListQuery{Cursor: "2026-11-21T01:00:00.005Z|a"}, "[[a|1 b é old]]")
	wantPages(t, s, history.ListQuery{Cursor: "2026-11-21T01:00:00.004Z|a"}, "[[old]]")
	wantPages(t, s, history.ListQuery{Cursor: "2999-01-01T00:00:00.000Z|a", Limit: 100}, "[[new - B _ a|1 b é old]]")
	wantPages(t, s, history.ListQuery{Cursor: "1999-01-01T00:00:00.000Z|a"}, "[[]]")
}

func listFilters(t *testing.T, s history.Store) {
	host := lines(Start("w", "host_mediated"), Node("begin", "t"))
	fillList(t, s, []listed{
		{"done1", 10, lines(Start("w", "in_process"), End())},
		{"done2", 20, lines(Start("v", "in_process"), End())},
		{"done3", 30, lines(Start("w", "in_process"), End())},
		{"host1", 15, host},
		{"host2", 25, host},
		{"failed", 40, lines(Start("w", "in_process"), []string{"C FailNode", `E ExecutionFailed {"error":"e"}`})},
		{"cancelled", 41, lines(Start("w", "in_process"), []string{"C CancelExecution", "E ExecutionCancelled"})},
		{"interrupted", 42, lines(Start("v", "in_process"), []string{"C RaiseInterrupt i", "E InterruptRaised i"})},
		{"signal", 43, lines(Start("v", "in_process"), []string{`E SignalWaitStarted w {"signalName":"s"}`})},
		{"running", 44, Start("w", "in_process")},
		{"nameless", 45, []string{"E NodeScheduled a"}},
	})
	at := func(ms float64) time.Time { return Begin.Add(time.Duration(ms * float64(time.Millisecond))) }
	for _, c := range []struct {
		q    history.ListQuery
		want string
	}{
		{history.ListQuery{Phase: history.PhaseCompleted}, "[[done3 done2 done1]]"},
		{history.ListQuery{Phase: history.PhaseAwaitingActivity}, "[[host2 host1]]"},
		{history.ListQuery{Phase: history.PhaseAwaitingSignal}, "[[signal]]"},
		{history.ListQuery{Phase: history.PhaseInterrupted}, "[[interrupted]]"},
		{history.ListQuery{Phase: history.PhaseFailed}, "[[failed]]"},
		{history.ListQuery{Phase: history.PhaseCancelled}, "[[cancelled]]"},
		{history.ListQuery{Phase: history.PhaseRunning}, "[[nameless running]]"},
		{history.ListQuery{Phases: history.EndedPhases()}, "[[cancelled failed done3 done2 done1]]"},
		{history.ListQuery{Phases: history.OpenPhases(), Limit: 4}, "[[nameless running signal interrupted] [host2 host1]]"},
		{history.ListQuery{Phase: history.PhaseFailed, Phases: []history.Phase{history.PhaseInterrupted, "bogus"}}, "[[interrupted failed]]"},
		{history.ListQuery{Phases: []history.Phase{history.PhaseInterrupted}, DefinitionName: "v"}, "[[interrupted]]"},
		{history.ListQuery{Phase: "bogus"}, "[[]]"},
		{history.ListQuery{DefinitionName: "v"}, "[[signal interrupted done2]]"},
		{history.ListQuery{DefinitionName: "V"}, "[[]]"},
		{history.ListQuery{DefinitionName: "w", Phase: history.PhaseCompleted}, "[[done3 done1]]"},
		{history.ListQuery{DefinitionName: "w", Limit: 3}, "[[running cancelled failed] [done3 host2 host1] [done1]]"},
		{history.ListQuery{Phase: history.PhaseCompleted, Limit: 1}, "[[done3] [done2] [done1]]"},
		{history.ListQuery{UpdatedAfter: at(41)}, "[[nameless running signal interrupted cancelled]]"},
		{history.ListQuery{UpdatedAfter: at(40.5)}, "[[nameless running signal interrupted cancelled]]"},
		{history.ListQuery{UpdatedBefore: at(15)}, "[[host1 done1]]"},
		{history.ListQuery{UpdatedBefore: at(19.9)}, "[[host1 done1]]"},
		{history.ListQuery{UpdatedAfter: at(15), UpdatedBefore: at(25), Limit: 2}, "[[host2 done2] [host1]]"},
		{history.ListQuery{UpdatedAfter: at(25), UpdatedBefore: at(15)}, "[[]]"},
		{history.ListQuery{UpdatedBefore: at(30), Phase: history.PhaseCompleted, DefinitionName: "w", UpdatedAfter: at(11)}, "[[done3]]"},
		{history.ListQuery{UpdatedBefore: at(30), Cursor: history.Cursor{UpdatedAt: at(44), ExecutionID: "x"}.String()}, "[[done3 host2 done2 host1 done1]]"},
	} {
		wantPages(t, s, c.q, c.want)
	}
}

// listLabels: labels are compared as a whole, name and value, even if other data of the run has the same text.
func listLabels(t *testing.T, s history.Store) {
	for id, labels := range map[string]string{
		"open": `{"customer":"17","empty":""}`, "quoted": `{"a \"quoted\" é.name":"=:\""}`, "ended": `{"customer":"17"}`,
		"other": `{"customer":"170","of":"customer"}`, "none": `{}`,
	} {
		more := []string{"C ScheduleNode a"}
		if id == "ended" {
			more = End()
		}
		x := NewTrace(t, "label "+id)
		x.Now = Begin.Add(-time.Duration(len(id)) * time.Hour)
		x.Append(s, append([]string{`E ExecutionStarted {"workflowName":"labelled","title":"The ` + id + ` one","labels":` + labels + `}`}, more...)...)
		if e := got[history.Execution](t)(s.Execution(t.Context(), "label "+id)); e.Title != "The "+id+" one" {
			t.Errorf("%s has the title %q", id, e.Title)
		}
	}
	for _, c := range []struct {
		q    history.ListQuery
		want string
	}{
		{history.ListQuery{Labels: map[string]string{"customer": "17"}}, "[[label open label ended]]"},
		{history.ListQuery{Labels: map[string]string{"customer": "17"}, Limit: 1}, "[[label open] [label ended]]"},
		{history.ListQuery{Labels: map[string]string{"customer": ""}, Limit: 2}, "[[label open label ended] [label other]]"},
		{history.ListQuery{Labels: map[string]string{"customer": "", "empty": ""}}, "[[label open]]"},
		{history.ListQuery{Labels: map[string]string{"customer": "17"}, Phases: history.OpenPhases(), DefinitionName: "labelled"}, "[[label open]]"},
		{history.ListQuery{Labels: map[string]string{"customer": "17"}, DefinitionName: "w"}, "[[]]"},
		{history.ListQuery{Labels: map[string]string{"17": ""}}, "[[]]"},
		{history.ListQuery{Labels: map[string]string{`a "quoted" é.name`: `=:"`}}, "[[label quoted]]"},
	} {
		wantPages(t, s, c.q, c.want)
	}
}

// listLabelsOfDeleted: a label leads to no run that was deleted, nor to a later run with its id.
func listLabelsOfDeleted(t *testing.T, s history.Store) {
	p, ok := s.(history.Pruner)
	if !ok {
		t.Skipf("%T does not prune", s)
	}
	label := func(id, value string) {
		t.Helper()
		NewTrace(t, id).Append(s, lines([]string{fmt.Sprintf(`E ExecutionStarted {"workflowName":"w","labels":{"stage":%q}}`, value)}, End())...)
	}
	label("a", "one")
	must(t, s.Append(t.Context(), NewTrace(t, "b").Batch(`E ExecutionStarted {"workflowName":"w","labels":{"stage":"two"}}`)))
	got[history.PrunePage](t)(p.Prune(t.Context(), history.PruneQuery{Before: Begin.AddDate(1, 0, 0)}))
	wantPages(t, s, history.ListQuery{Labels: map[string]string{"stage": ""}}, "[[b]]")
	label("a", "three")
	wantPages(t, s, history.ListQuery{Labels: map[string]string{"stage": "one"}}, "[[]]")
	wantPages(t, s, history.ListQuery{Labels: map[string]string{"stage": ""}}, "[[a b]]")
}

// listBelow: lists the subworkflows below a run at any depth, including those begun by another engine, but not runs whose ids start
// alike.
func listBelow(t *testing.T, s history.Store) {
	running, ended := Start("w", "in_process"), lines(Start("w", "in_process"), End())
	fillList(t, s, []listed{
		{"p", 0, running},
		{"p:sub:a", 10, ended}, {"p:sub:a:sub:b", 500, running}, {"p:sub:a#2", 300, running}, {"p:sub:é", 300, ended},
		{"p2", 20, running}, {"p2:sub:a", 30, running}, {"p:su", 40, running}, {"p:sub;", 50, running}, {"o:sub:p:sub:a", 60, running},
	})
	for _, c := range []struct {
		q    history.ListQuery
		want string
	}{
		{history.ListQuery{Below: "p"}, "[[p:sub:a:sub:b p:sub:a#2 p:sub:é p:sub:a]]"},
		{history.ListQuery{Roots: true}, "[[p:sub; p:su p2 p]]"},
		{history.ListQuery{Roots: true, Limit: 3}, "[[p:sub; p:su p2] [p]]"},
		{history.ListQuery{Roots: true, Below: "p"}, "[[]]"},
		{history.ListQuery{Roots: true, DefinitionName: "w", Phases: history.OpenPhases(), Limit: 2}, "[[p:sub; p:su] [p2 p]]"},
		{history.ListQuery{Below: "p", Limit: 3}, "[[p:sub:a:sub:b p:sub:a#2 p:sub:é] [p:sub:a]]"},
		{history.ListQuery{Below: "p", Limit: 1}, "[[p:sub:a:sub:b] [p:sub:a#2] [p:sub:é] [p:sub:a]]"},
		{history.ListQuery{Below: "p:sub:a"}, "[[p:sub:a:sub:b]]"},
		{history.ListQuery{Below: "p", Phases: history.EndedPhases()}, "[[p:sub:é p:sub:a]]"},
		{history.ListQuery{Below: "p", Phases: history.OpenPhases(), DefinitionName: "w"}, "[[p:sub:a:sub:b p:sub:a#2]]"},
		{history.ListQuery{Below: "p", DefinitionName: "other"}, "[[]]"},
		{history.ListQuery{Below: "p", Labels: map[string]string{"customer": ""}}, "[[]]"},
		{history.ListQuery{Below: "p", UpdatedAfter: Begin.Add(300 * time.Millisecond), UpdatedBefore: Begin.Add(400 * time.Millisecond)}, "[[p:sub:a#2 p:sub:é]]"},
		{history.ListQuery{Below: "p:sub:a:sub:b"}, "[[]]"},
		{history.ListQuery{Below: "none"}, "[[]]"},
	} {
		wantPages(t, s, c.q, c.want)
	}
}

// listFollowsAppends: a run moves to the front, and from one phase to the next.
func listFollowsAppends(t *testing.T, s history.Store) {
	x, y := NewTrace(t, "x"), NewTrace(t, "y")
	x.Append(s, Start("w", "in_process")...)
	y.Now = y.Now.Add(time.Second)
	y.Append(s, Start("w", "in_process")...)
	wantPages(t, s, history.ListQuery{}, "[[y x]]")
	x.Now = x.Now.Add(time.Minute)
	x.Append(s, "C ScheduleNode a")
	wantPages(t, s, history.ListQuery{}, "[[x y]]")
	x.Append(s, `E SignalWaitStarted a {"signalName":"s"}`)
	wantPages(t, s, history.ListQuery{Phase: history.PhaseRunning}, "[[y]]")
	wantPages(t, s, history.ListQuery{Phase: history.PhaseAwaitingSignal, DefinitionName: "w"}, "[[x]]")
	x.Append(s, lines([]string{`E SignalReceived a {"signalName":"s","payload":{}}`}, End())...)
	wantPages(t, s, history.ListQuery{Phase: history.PhaseAwaitingSignal}, "[[]]")
	wantPages(t, s, history.ListQuery{Phase: history.PhaseCompleted}, "[[x]]")
}

func listArguments(t *testing.T, s history.Store) {
	var runs []listed
	for i := range 120 {
		runs = append(runs, listed{fmt.Sprintf("r%03d", i), i, []string{"E ExecutionStarted"}})
	}
	fillList(t, s, runs)
	for limit, want := range map[int]int{0: 50, 1: 1, 99: 99, 100: 100} {
		page := got[history.ListPage](t)(s.List(t.Context(), history.ListQuery{Limit: limit}))
		if len(page.Executions) != want || page.NextCursor == "" {
			t.Errorf("limit %d: got %d runs and cursor %q", limit, len(page.Executions), page.NextCursor)
		}
	}
	for _, limit := range []int{-1, 101, 1000} {
		wantRefusal(t, problem.ValidationError)(s.List(t.Context(), history.ListQuery{Limit: limit}))
	}
	for _, bad := range []string{"abc", "|x", "x|", "zzz|x", "0|x", "2026-11-21T01:00:00.005Z"} {
		wantRefusal(t, problem.InvalidListCursor)(s.List(t.Context(), history.ListQuery{Cursor: bad}))
	}
	for cursor, oldest := range map[string]bool{"2026-11-21T01:00:00.005Z|x": true, "oldest|2026-11-21T01:00:00.005Z|x": false, "oldest|": true} {
		wantRefusal(t, problem.InvalidListCursor)(s.List(t.Context(), history.ListQuery{Cursor: cursor, Oldest: oldest}))
	}
	wantRefusal(t, problem.ValidationError)(s.Count(t.Context(), history.ListQuery{}, -1))
	if n := got[int](t)(s.Count(t.Context(), history.ListQuery{Limit: 3, Cursor: "abc"}, 100)); n != 100 {
		t.Errorf("counted %d", n)
	}
	all := slices.Concat(pages(t, s, history.ListQuery{Limit: 7})...)
	if !slices.IsSortedFunc(all, func(a, b string) int { return strings.Compare(b, a) }) || len(all) != 120 {
		t.Errorf("pages of 7 hold %v", all)
	}
}

// listManyTimes reads runs with many equal or close times page by page, and checks their order.
func listManyTimes(t *testing.T, s history.Store) {
	kinds := [][]string{
		Start("a", "in_process"), lines(Start("a", "in_process"), End()),
		lines(Start("b", "host_mediated"), Node("begin", "t")), lines(Start("b", "in_process"), End()),
	}
	var runs []listed
	for i := range 90 {
		// A third within one millisecond, a third spread over half a second, a third far apart.
		at := [...]int{250, i * 37 % 500, 1000 + i*61}[i%3]
		id := fmt.Sprintf("%03d", i*7919%90)
		if i%5 == 0 {
			id += history.ChildMark + "x"
		}
		kind := slices.Clone(kinds[i%len(kinds)])
		if i%2 == 0 { // the others are not listed by label
			first, found := strings.CutSuffix(kind[0], "}")
			if !found {
				t.Fatalf("unexpected start %q", kind[0])
			}
			kind[0] = fmt.Sprintf(`%s,"labels":{"stage":"s%d","of":"many"}}`, first, i%3)
		}
		runs = append(runs, listed{id, at, kind})
	}
	fillList(t, s, runs)
	var all []history.Execution
	for _, r := range runs {
		all = append(all, got[history.Execution](t)(s.Execution(t.Context(), r.id)))
	}
	queries := []history.ListQuery{
		{Limit: 100},
		{Limit: 7},
		{Limit: 1},
		{Limit: 9, Phase: history.PhaseCompleted},
		{Limit: 4, DefinitionName: "b"},
		{Limit: 3, DefinitionName: "b", Phase: history.PhaseAwaitingActivity},
		{Limit: 5, UpdatedAfter: Begin.Add(99 * time.Millisecond), UpdatedBefore: Begin.Add(401 * time.Millisecond)},
		{Limit: 2, UpdatedAfter: Begin.Add(250 * time.Millisecond), UpdatedBefore: Begin.Add(250 * time.Millisecond)},
		{Limit: 3, Roots: true},
		{Limit: 1, Roots: true, DefinitionName: "a"},
		{Limit: 2, Roots: true, UpdatedAfter: Begin.Add(111 * time.Millisecond), UpdatedBefore: Begin.Add(3 * time.Second)},
		{Limit: 1, Unhandled: true},
		{Limit: 4, Labels: map[string]string{"stage": "s1"}},
		{Limit: 3, Labels: map[string]string{"stage": "", "of": "many"}, Roots: true},
		{Limit: 2, Labels: map[string]string{"of": ""}, UpdatedAfter: Begin.Add(99 * time.Millisecond), UpdatedBefore: Begin.Add(3 * time.Second)},
	}
	for _, q := range queries {
		q.Oldest = true
		queries = append(queries, q)
	}
	for _, q := range queries {
		slices.SortFunc(all, func(a, b history.Execution) int { return q.CursorOf(&a).Compare(q.CursorOf(&b)) })
		var want []string
		for i := range all {
			if q.Matches(&all[i]) {
				want = append(want, all[i].ID)
			}
		}
		if len(want) < 10 {
			t.Fatalf("%+v selects %d runs", q, len(want))
		}
		if got := slices.Concat(pages(t, s, q)...); !slices.Equal(got, want) {
			t.Errorf("%+v:\n got %v\nwant %v", q, got, want)
		}
	}
}
