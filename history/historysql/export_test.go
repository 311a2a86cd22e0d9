package historysql

import (
	"context"
	"slices"

	"modernc.org/sqlite"

	"github.com/workflows-engine/workflows-engine/history"
)

// NewestVersion is the version of files that this package makes.
var NewestVersion = len(migrations())

// ApplicationID marks files of this package.
const ApplicationID = applicationID

// The statements of most appends, and of a change of the owner.
const (
	AdvanceExecution = advanceExecution
	ClaimExecution   = claimExecution
)

// Script runs statements on the writing connection, outside of a transaction.
func (s *Store) Script(text string) error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	c, err := s.writing()
	if err != nil {
		return err
	}
	return c.script(text)
}

// Hold keeps everybody from writing until release is called.
func (s *Store) Hold() (release func()) {
	s.turn <- struct{}{}
	return func() { <-s.turn }
}

// Panics is a write that panics where it would make its change.
func (s *Store) Panics(ctx context.Context) error {
	return s.share(ctx, "the panic", 1, func(*conn) error { panic("a mistake") })
}

// Queued is the number of writes that wait to be made along with others.
func (s *Store) Queued() int {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return len(s.queue.waiting)
}

// OnCommit sets what is called before each commit of the present writing connection; other than 0 makes it fail.
func (s *Store) OnCommit(call func() int32) error {
	defer s.Hold()()
	c, err := s.writing()
	if err != nil {
		return err
	}
	c.Conn.(sqlite.HookRegisterer).RegisterCommitHook(call)
	return nil
}

// PagesWritten counts the pages that the present writing connection has written to the log.
func (s *Store) PagesWritten() (int, error) {
	defer s.Hold()()
	c, err := s.writing()
	if err != nil {
		return 0, err
	}
	pages, _, err := c.Conn.(sqlite.DBStatus).Status(sqlite.DBStatusCacheWrite, false)
	return pages, err
}

// ListStatements gives the queries of pages.
func ListStatements() []string {
	var out []string
	for _, phases := range [][]history.Phase{history.Phases(), history.OpenPhases(), {history.PhaseCompleted}} {
		for _, q := range []history.ListQuery{
			{}, {DefinitionName: "w"}, {Roots: true}, {Unhandled: true}, {Labels: map[string]string{"a": "b"}},
			{Oldest: true}, {Oldest: true, DefinitionName: "w"}, {Oldest: true, Roots: true},
		} {
			q.Phases = phases
			l := &listing{q: &q, phases: phases}
			out = append(out, l.page(), l.stretch())
		}
	}
	slices.Sort(out)
	return out
}

// LabelStatements gives the queries of pages and counts of the runs with a label, by its value and by its name.
func LabelStatements() []string {
	var out []string
	for _, value := range []string{"b", ""} {
		l := &listing{q: &history.ListQuery{Labels: map[string]string{"a": value}, Roots: true, DefinitionName: "w"}, phases: history.Phases(), label: "a", indexed: true}
		out = append(out, l.page(), l.count())
	}
	return out
}

// CountStatements gives the queries of counts that read nothing but an index.
func CountStatements() []string {
	var out []string
	for _, q := range []history.ListQuery{{}, {DefinitionName: "w"}} {
		out = append(out, (&listing{q: &q, phases: history.OpenPhases()}).count())
	}
	return out
}

// BelowStatements gives the queries of pages below a run.
func BelowStatements() []string {
	all := history.ListQuery{DefinitionName: "w", Below: "x", Roots: true, Unhandled: true, Labels: map[string]string{"a": ""}}
	return []string{
		(&listing{q: &history.ListQuery{Below: "x"}, phases: history.Phases()}).page(), (&listing{q: &all, phases: history.OpenPhases()}).page(),
	}
}

// Lookups gives the queries that must not walk a table.
func Lookups() map[string]string {
	return map[string]string{
		"rows": readRows, "execution": readExecution, "phase": readPhase, "position": readPosition,
		"owner": readOwner, "owned elsewhere": ownedElsewhere, "owned": ownedExecutions,
		"overview": overview, "unowned": unownedExecutions, "newest row": newestRow, "changed runs": changedRuns,
		"definition": readDefinition, "definition by name": readDefinitionByName, "definitions": listDefinitions,
		"labelled": countLabelled, "label": countLabel, "due timers": dueTimers,
		"short row": readShortRow, "states": readStates, "blob": readBlob, "blobs to drop": dropBlobs,
		"references to drop": dropBlobRefs,
		"due deliveries":     dueDeliveries, "delivery": readDelivery, "claim of a delivery": claimDelivery, "end of an attempt": endDeliveryAttempt,
		"settled delivery": settleDelivery, "pending delivery": pendingDelivery, "attempts to drop": dropDeliveryAttempts,
		"links": linksOf, "handled": readHandled, "handled by a retry": handledByRetry, "links to drop": dropLinks,
		"lanes": readyLanes, "use of lanes": useOfLanes, "place": readPlace, "any ready run": anyReady, "first ready runs": firstReady,
		"oldest ready runs": oldestReady, "ready run": putReady, "run to give away": giveAway, "processes": liveProcesses, "description": describeProcess,
		"limit": oneLimit, "next start": moveNext, "share": putShare, "share to drop": dropShare,
		"deliveries to drop": dropDeliveries, "events to drop": dropDeliveryEvents,
		"deliveries of a run": deliveriesStatement(&history.DeliveryQuery{ExecutionID: "x", States: []history.DeliveryState{history.DeliveryDead}}),
		"dead deliveries":     deliveriesStatement(&history.DeliveryQuery{States: []history.DeliveryState{history.DeliveryDead}}),
	}
}

// BeginPrune marks a run as deleted and takes the first step, as a Prune that is killed then.
func (s *Store) BeginPrune(id string) error {
	return s.write(background, doingPrune, func(c *conn) error {
		if err := markRun(c, id); err != nil {
			return err
		}
		_, err := c.exec(pruneRows, id, int64(pruneStep))
		return err
	})
}

// Text gives the first column of a query's only row.
func (s *Store) Text(query string) (string, error) {
	var text string
	_, err := s.readers.row(background, query, nil, &text)
	return text, err
}

// LookAgain makes the store look at its files with the next call.
func (s *Store) LookAgain() { s.looked.Store(0) }

// Look makes what a watch does at every tick; end closes its connection.
func (s *Store) Look(changed func(executionID string, seq int64)) (look, end func() error, err error) {
	g := growth{changed: changed, last: -1}
	w, err := s.newWatch(g.look)
	if err != nil {
		return nil, nil, err
	}
	return func() error { _, err := w.tick(true); return err }, w.close, nil
}

// Settle is what Append does when its transaction has failed to commit.
func (s *Store) Settle(ctx context.Context, b history.Batch, failed error) error {
	a := new(appending)
	a.encode(ctx, s, b)
	return s.settle(&pending{ctx: ctx, change: a.change, stored: a.stored}, failed)
}

// SetMaxLabelled sets how many runs with a label are read from the index of labels.
func (s *Store) SetMaxLabelled(n int64) { s.maxLabelled = n }
