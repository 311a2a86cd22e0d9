package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// asks is a model that makes calls one after the other, and keeps the result of each.
type asks struct {
	mu    sync.Mutex
	calls []chat.Call
	// results are those by the number of the call, offered the names of tools of the newest request.
	results map[int]string
	offered []string
	twice   []string
}

func (m *asks) Chat(_ context.Context, req chat.Request) (chat.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, msg := range req.Messages {
		if msg.Role != chat.Result {
			continue
		}
		if was, ok := m.results[n]; ok && was != msg.Text {
			m.twice = append(m.twice, fmt.Sprintf("result %d: %.200s, then %.200s", n, was, msg.Text))
		}
		m.results[n] = msg.Text
		n++
	}
	m.offered = nil
	for _, t := range req.Tools {
		m.offered = append(m.offered, t.Name)
	}
	if n >= len(m.calls) {
		return chat.Reply{Text: "Read."}, nil
	}
	return chat.Reply{Calls: []chat.Call{m.calls[n]}}, nil
}

func asking(calls ...string) *asks {
	m := &asks{results: map[int]string{}}
	for i, c := range calls {
		name, args, _ := strings.Cut(c, " ")
		m.calls = append(m.calls, chat.Call{ID: fmt.Sprintf("c%d", i), Name: name, Arguments: args})
	}
	return m
}

// says checks results by what they hold.
func (m *asks) says(t testing.TB, want ...string) {
	t.Helper()
	for i, w := range want {
		for _, part := range strings.Split(w, " … ") {
			if !strings.Contains(m.results[i], part) {
				t.Errorf("result %d is %.400s, without %s", i, m.results[i], part)
			}
		}
		if len(m.results[i]) > 5000 {
			t.Errorf("result %d has %d bytes", i, len(m.results[i]))
		}
	}
	for _, wrong := range m.twice {
		t.Error(wrong)
	}
}

type wanted struct {
	MiB int `json:"mib"`
}

// warehouse gives lists, texts and objects of a size.
func warehouse(calls func()) []agent.Toolset {
	again := []agent.Option{agent.WithOnCrash(agent.Repeat)}
	items := func(mib int) []any {
		var list []any
		for size := 2; size < mib<<20; {
			item := fmt.Sprintf("item %06d of the list", len(list))
			list, size = append(list, item), size+len(item)+3
		}
		return list
	}
	return []agent.Toolset{
		agent.Func("list", "Lists.", func(_ context.Context, in wanted) ([]any, error) { calls(); return items(in.MiB), nil }, again...),
		agent.Func("text", "Reads.", func(_ context.Context, in wanted) (string, error) {
			calls()
			return strings.Repeat("0123456789abcdef", in.MiB<<16-1) + "the very last Ω!", nil
		}, again...),
		agent.Func("order", "Orders.", func(_ context.Context, in wanted) (object, error) {
			calls()
			return object{"id": "o-1", "items": items(in.MiB), "token": "s3cret-token"}, nil
		}, again...),
	}
}

// TestLargeResultsAreKeptAndReadOn: the model sees a preview, without previews being configured, and reads any part. The larger ones, up to the
// largest that is kept whole, are in the long form.
func TestLargeResultsAreKeptAndReadOn(t *testing.T) {
	t.Parallel()
	sizes := []int{5, 20, 63}[:soak.Size(1, 1, 3)]
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, mib := range sizes {
		t.Run(fmt.Sprintf("%d MiB", mib), func(t *testing.T) {
			store := historymem.New()
			m := asking(
				fmt.Sprintf(`list {"mib":%d}`, mib), `fetch_result {"ref":"t1.c1","offset":90000,"limit":1}`, `fetch_result {"ref":"t1.c1","path":".[100:103]"}`,
				fmt.Sprintf(`text {"mib":%d}`, mib), fmt.Sprintf(`fetch_result {"ref":"t4.c1","offset":%d}`, mib<<20-18),
				fmt.Sprintf(`order {"mib":%d}`, mib), `fetch_result {"ref":"t6.c1","path":".items[120000]"}`, `fetch_result {"ref":"t6.c1","path":".id"}`,
			)
			r := workshop(t, store, m, nil, warehouse(func() {})...)
			defer shut(t, r)
			if run := work(t, r); run.Status != machine.Completed || run.FinalState["text"] != "Read." {
				t.Fatalf("%s %v", run.Status, run.Error)
			}
			m.says(t,
				`[list] list of … First item: \"item 000000 of the list\" Use fetch_result with ref \"t1.c1\"`, `"items":["item 090000 of the list"]`, `"items":["item 000100 of the list","item 000101 of the list","item 000102 of the list"]`,
				`[text] text, … It begins: 0123456789abcdef0123`, `the very last Ω!`, `[order] object of 3 members`, `item 120000 of the list`, `o-1`,
			)
			checked(t, store, "r")
		})
	}
}

// TestAResultBeyondWhatIsKept is cut, and says so. The largest is in the long form.
func TestAResultBeyondWhatIsKept(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		given, most   int
		preview, read string
	}{
		{3, 2 << 20, `[text] text, 2.1 MB, the beginning of 3.1 MB: the rest was not kept.`, `"of":2097152 … "text":"0123" … "truncated":true … "whole_bytes":3145729`},
		{65, 0, `[text] text, 67.1 MB, the beginning of 68.2 MB: the rest was not kept.`, `"of":67108864 … "text":"0123" … "truncated":true … "whole_bytes":68157441`},
	} {
		if i >= soak.Size(1, 1, 2) {
			break
		}
		m := asking(fmt.Sprintf(`text {"mib":%d}`, c.given), `fetch_result {"ref":"t1.c1","limit":4}`)
		r := workshop(t, historymem.New(), m, func(a *agent.Agent) { a.Results.MaxBytes = c.most }, warehouse(func() {})...)
		if run := work(t, r); run.Status != machine.Completed {
			t.Errorf("%s %v", run.Status, run.Error)
		}
		m.says(t, c.preview, c.read)
		shut(t, r)
	}
}

// TestARunWithoutRoomKeepsTheBeginning: a large result does not take a run to its limit of bytes. Less is kept, and the agent goes on.
func TestARunWithoutRoomKeepsTheBeginning(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	m := asking(`text {"mib":5}`, `text {"mib":6}`, `text {"mib":7}`, `fetch_result {"ref":"t3.c1","limit":4}`)
	agents := enginetest.Must(agent.New(agent.Config{
		Models: map[string]agent.Model{"main": {Chat: m, Model: agentloop.Model{Model: "m"}}},
		Agents: map[string]agent.Agent{"clerk": {Config: agentloop.Config{Instructions: "You work."}, Tools: warehouse(func() {})}},
	}))
	r := enginetest.Must(graph.New(store, graph.Options{Delegates: activities.Composite{SDK: agents}, Work: graph.WorkAll, MaxBytes: 12 << 20}))
	defer shut(t, r)
	if run := work(t, r); run.Status != machine.Completed {
		t.Fatalf("%s %v", run.Status, run.Error)
	}
	m.says(t, "the beginning of 5.2 MB: the rest was not kept", "the beginning of 6.3 MB: the rest was not kept", "the beginning of 7.3 MB: the rest was not kept", `"text":"0123" … "whole_bytes":7340033`)
}

// TestSmallResultsOfferNothingMore: an agent without large results has no further tool.
func TestSmallResultsOfferNothingMore(t *testing.T) {
	t.Parallel()
	m := asking(`text {"mib":1}`, `text {"mib":2}`)
	r := workshop(t, historymem.New(), m, nil, agent.Func("text", "Reads.", func(_ context.Context, in wanted) (string, error) {
		if len(m.results) == 1 && strings.Contains(strings.Join(m.offered, " "), "fetch_result") {
			t.Errorf("offered %q", m.offered)
		}
		return strings.Repeat("x", (in.MiB-1)<<20+1000), nil
	}))
	defer shut(t, r)
	if run := work(t, r); run.Status != machine.Completed || strings.Join(m.offered, " ") != "text fetch_result" {
		t.Errorf("%s %v, offered %q", run.Status, run.Error, m.offered)
	}
}

// TestSecretsInLargeResultsAreMasked, also where one lies over the border of two pieces.
func TestSecretsInLargeResultsAreMasked(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	secret := "s3cret-value-of-some-length"
	agents := agent.Config{
		Models: map[string]agent.Model{"main": {Chat: asking(`text {"mib":3}`), Model: agentloop.Model{Model: "m"}}},
		Agents: map[string]agent.Agent{"clerk": {Config: agentloop.Config{Instructions: "You work."}, Tools: []agent.Toolset{agent.Func("text", "Reads.", func(_ context.Context, _ wanted) (string, error) {
			return strings.Repeat("x", 1<<20-10) + secret + strings.Repeat(secret+" ", 80_000), nil
		})}}},
		Mask: func(text string) string { return strings.ReplaceAll(text, secret, "***") },
	}
	r := shopOf(t, store, agents)
	defer shut(t, r)
	if run := work(t, r); run.Status != machine.Completed {
		t.Fatalf("%s %v", run.Status, run.Error)
	}
	all := ""
	for _, rec := range enginetest.Must(store.Read(t.Context(), "r", 1, 0)) {
		if s, _, ok := machine.StepOf(&rec); ok && s.Kind == agentloop.StepPiece {
			text, _ := s.Body["pieceText"].(string)
			all += text
		}
	}
	if len(all) < 1<<20 || strings.Contains(all, "s3cret") || strings.Contains(all, "some-length") {
		t.Errorf("%d bytes, %.80q", len(all), all[max(0, len(all)-80):])
	}
}

// TestLargeResultsSurviveEveryCrash stops the process before and after each commit: another one reads the same parts, and no call whose result is
// recorded is made again.
func TestLargeResultsSurviveEveryCrash(t *testing.T) {
	t.Parallel()
	// A commit that died late is one that the next process sees; under the race detector every other one dies, in one of the two ways.
	play := func(left int, late bool) (appends int) {
		store := &dying{Store: historymem.New(), left: left, late: late, end: make(chan struct{})}
		m := asking(`list {"mib":2}`, `fetch_result {"ref":"t1.c1","offset":60000,"limit":1}`)
		doc := enginetest.Define(t, researched)
		r := workshop(t, store, m, nil, warehouse(func() {})...)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = finish(t, r, doc, nil)
		}()
		select {
		case <-gone:
		case <-store.end:
		}
		shut(t, r)
		<-gone
		if left >= 0 {
			r = workshop(t, store.Store, m, nil, warehouse(func() {})...)
			if run, err := finish(t, r, doc, nil); err != nil || run.Status != machine.Completed {
				t.Fatalf("append %d, late %v: %v, %+v", left, late, err, run)
			}
			shut(t, r)
		}
		m.says(t, "[list] list of", `"items":["item 060000 of the list"]`)
		pieces := kinds(t, store)["piece"]
		if pieces != 2 && pieces != 3 {
			t.Errorf("append %d, late %v: %d pieces: %v", left, late, pieces, stepsOf(t, store))
		}
		return store.appends
	}
	for left := range play(-1, false) {
		for _, late := range []bool{false, true} {
			if !soak.UnderRace || left%2 == 0 && late == (left%4 == 0) {
				play(left, late)
			}
		}
	}
}

// TestForksAndCopiesHaveLargeResults: forks share the pieces, a file takes them along, redacted ones hide them, and a retry goes on with them.
func TestForksAndCopiesHaveLargeResults(t *testing.T) {
	t.Parallel()
	open := func(name string) *historysql.Store {
		store := enginetest.Must(historysql.Open(t.Context(), filepath.Join(t.TempDir(), name), historysql.Options{Synchronous: historysql.Normal}))
		t.Cleanup(func() { _ = store.Close() })
		return store
	}
	store, calls := open("runs.db"), 0
	m := asking(`order {"mib":2}`, `fetch_result {"ref":"t1.c1","path":".items[60000]"}`)
	r := workshop(t, store, m, nil, warehouse(func() { calls++ })...)
	defer shut(t, r)
	if run := work(t, r); run.Status != machine.Completed {
		t.Fatalf("%s %v", run.Status, run.Error)
	}
	size := func() (bytes int64) {
		e := enginetest.Must(store.Execution(t.Context(), "fork"))
		return e.Bytes
	}
	result := int64(0)
	for _, rec := range enginetest.Must(store.Read(t.Context(), "r", 1, 0)) {
		if s, _, ok := machine.StepOf(&rec); ok && s.Key == "t1.c1" && s.Kind == agentloop.StepResult {
			result = rec.Seq
		}
	}
	if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: "fork", Seq: result}); err != nil {
		t.Fatal(err)
	}
	if run := end(t, r, "fork"); run.Status != machine.Completed || calls != 1 {
		t.Errorf("%s %v, %d calls", run.Status, run.Error, calls)
	}
	m.says(t, "[order] object of 3 members", "item 060000 of the list")
	if n := size(); n > 1<<20 {
		t.Errorf("the fork takes %d bytes", n)
	}

	var file, hidden bytes.Buffer
	if err := r.Export(t.Context(), "r", graph.ExportOptions{}, &file); err != nil {
		t.Fatal(err)
	}
	if err := r.Export(t.Context(), "r", graph.ExportOptions{Redact: true}, &hidden); err != nil || strings.Contains(hidden.String(), "s3cret-token") {
		t.Errorf("redacted: %v, %d bytes", err, hidden.Len())
	}
	copied := open("copy.db")
	other := enginetest.Must(graph.New(copied, graph.Options{CheckSteps: agent.CheckSteps}))
	defer shut(t, other)
	if _, err := other.Import(t.Context(), bytes.NewReader(file.Bytes())); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Verify(t.Context(), "r", false, func(f history.Finding) { t.Errorf("%+v", f) }); err != nil {
		t.Error(err)
	}
}

// TestAChangedPieceIsFound: the steps of an agent are checked with the pieces of its results, as an import and verify do.
func TestAChangedPieceIsFound(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := workshop(t, store, asking(`text {"mib":3}`), nil, warehouse(func() {})...)
	defer shut(t, r)
	if run := work(t, r); run.Status != machine.Completed {
		t.Fatalf("%s %v", run.Status, run.Error)
	}
	var a activities.RecordedAttempt
	pieces := []int{}
	for _, rec := range enginetest.Must(store.Read(t.Context(), "r", 1, 0)) {
		if s, _, ok := machine.StepOf(&rec); ok {
			if s.Kind == agentloop.StepPiece {
				pieces = append(pieces, len(a.Steps))
			}
			a.Steps = append(a.Steps, activities.Step{Key: s.Key, Kind: s.Kind, Body: s.Body, Totals: s.Totals, At: rec.CreatedAt})
		}
	}
	if _, err := agent.CheckSteps(a); err != nil || len(pieces) < 3 {
		t.Fatalf("%d pieces, %v", len(pieces), err)
	}
	changed := a.Steps[pieces[1]]
	body := maps.Clone(changed.Body)
	body[activities.PieceMember] = "A" + body[activities.PieceMember].(string)[1:]
	changed.Body = body
	for name, steps := range map[string][]activities.Step{
		"changed": append(append(slices.Clone(a.Steps[:pieces[1]]), changed), a.Steps[pieces[1]+1:]...),
		"missing": slices.Delete(slices.Clone(a.Steps), pieces[1], pieces[1]+1),
	} {
		if at, err := agent.CheckSteps(activities.RecordedAttempt{Steps: steps}); err == nil || at > pieces[1] {
			t.Errorf("%s: step %d, %v", name, at, err)
		}
	}
}

// TestForksFromWithinALargeResult goes on from every step, also from one in the middle of the pieces.
func TestForksFromWithinALargeResult(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	m := asking(`list {"mib":2}`, `fetch_result {"ref":"t1.c1","offset":60000,"limit":1}`)
	r := workshop(t, store, m, nil, warehouse(func() {})...)
	defer shut(t, r)
	if run := work(t, r); run.Status != machine.Completed {
		t.Fatalf("%s %v", run.Status, run.Error)
	}
	steps := 0
	for _, rec := range enginetest.Must(store.Read(t.Context(), "r", 1, 0)) {
		if _, _, ok := machine.StepOf(&rec); !ok {
			continue
		}
		if steps++; steps%soak.Size(1, 3, 1) != 0 {
			continue
		}
		id := fmt.Sprintf("fork-%d", rec.Seq)
		if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: id, Seq: rec.Seq}); err != nil {
			t.Fatalf("fork at %d: %v", rec.Seq, err)
		}
		if run := end(t, r, id); run.Status != machine.Completed {
			t.Errorf("fork at %d: %s %v", rec.Seq, run.Status, run.Error)
		}
		checked(t, store, id)
	}
	m.says(t, "[list] list of", `"items":["item 060000 of the list"]`)
}

// TestARetryGoesOnWithALargeResult fails after a call that does more than read: a retry of the run, and the next attempt of the node, take its
// pieces over and read them.
func TestARetryGoesOnWithALargeResult(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]string{"of the run": "", "of the node": " retry: {max_attempts: 3, initial_interval: 1s},"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, calls, failures := historymem.New(), 0, 0
				m := asking(`sell {"mib":3}`, `fetch_result {"ref":"t1.c1","offset":3145000}`)
				broken := model(func(ctx context.Context, req chat.Request) (chat.Reply, error) {
					if failures == 0 && req.Messages[len(req.Messages)-1].Role == chat.Result {
						failures++
						return chat.Reply{}, &activities.Failure{Code: "LLM_PROVIDER_ERROR", Message: "the provider is down"}
					}
					return m.Chat(ctx, req)
				})
				r := workshop(t, store, broken, func(c *agent.Agent) { c.Retry.MaxAttempts = 1 }, agent.Func("sell", "Sells.", func(_ context.Context, in wanted) (string, error) {
					calls++
					return strings.Repeat("x", in.MiB<<20) + " sold", nil
				}))
				defer shut(t, r)
				doc := enginetest.Define(t, strings.Replace(researched, "type: agent_delegate,", "type: agent_delegate,"+policy, 1))
				run, err := finish(t, r, doc, nil)
				if err == nil && policy == "" && run.Status == machine.Failed {
					_, err = r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: "r2"})
					if err == nil {
						run = end(t, r, "r2")
					}
				}
				if err != nil || run.Status != machine.Completed || calls != 1 || failures != 1 {
					t.Fatalf("%v, %+v: %d calls, %d failures", err, run, calls, failures)
				}
				m.says(t, "[sell] text, 3.1 MB", "x sold")
				checked(t, store, run.ExecutionID)
			})
		})
	}
}
