package historytest

import (
	"errors"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Open returns an empty store, which it closes when the test ends. The store judges leases by now; nil means its own clock.
type Open func(t testing.TB, now func() time.Time) history.Store

// Run runs all tests of the contract, each with its own store.
func Run(t *testing.T, open Open) { run(t, open, false) }

// kept marks a test that also belongs to RunPersistent.
const kept = true

func run(t *testing.T, open Open, persistent bool) {
	test := func(name string, kept bool, call func(t *testing.T)) {
		if kept || !persistent {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				call(t)
			})
		}
	}
	for _, c := range []struct {
		kept bool
		name string
		test func(t *testing.T, s history.Store)
	}{
		{kept, "append and read", appendAndRead},
		{kept, "read in parts", readInParts},
		{kept, "records come back as written", recordsComeBack},
		{!kept, "seqs of records are ignored", seqsAreIgnored},
		{kept, "conflicts change nothing", conflictsChangeNothing},
		{!kept, "a faulty batch is refused", faultyBatchIsRefused},
		{kept, "long batches", longBatches},
		{kept, "large payloads", largePayloads},
		{kept, "changing states", changingStates},
		{kept, "bytes are counted", bytesAreCounted},
		{kept, "unusual ids", unusualIDs},
		{!kept, "unknown ids", unknownIDs},
		{!kept, "one of many appenders wins", oneAppenderWins},
		{!kept, "appends to many runs", appendsToManyRuns},
		{!kept, "cancelled contexts", cancelledContexts},
		{!kept, "closed", closedStore},
		{!kept, "what was given can be changed", givenValuesAreIsolated},
		{!kept, "what was got can be changed", gotValuesAreIsolated},
		{kept, "projection equals the fold", projectionEqualsFold},
		{kept, "positions", positions},
		{kept, "definitions", definitions},
		{kept, "pages of definitions", definitionPages},
		{kept, "timers", timers},
		{kept, "a run's end drops timers and position", endDropsTimers},
		{kept, "orphans with subworkflows", orphanedParents},
		{kept, "orphaned subworkflows", orphanedChildren},
		{kept, "list order and pages", listPages},
		{kept, "list of many times", listManyTimes},
		{kept, "list filters", listFilters},
		{kept, "list labels", listLabels},
		{kept, "list labels of deleted runs", listLabelsOfDeleted},
		{kept, "list below a run", listBelow},
		{kept, "list follows appends", listFollowsAppends},
		{!kept, "list cursors and limits", listArguments},
		{kept, "importing", importing},
		{kept, "pruning", pruning},
		{!kept, "pruning arguments", pruningArguments},
		{kept, "pruning large trees", pruningLarge},
		{kept, "pruning definitions", pruningDefinitions},
		{kept, "deleted runs are not ready", readyDeleted},
		{kept, "what trees have used", treeUse},
		{kept, "links of runs", links},
		{!kept, "of two retries one begins", oneRetry},
		{kept, "handled runs", handled},
		{kept, "runs that are retried", handledByRetries},
		{kept, "retries of one work", retriesOfOneWork},
		{kept, "pending deliveries keep their run", deliveriesAndPruning},
		{kept, "pages of deliveries", deliveryPages},
		{!kept, "keys", keys},
		{kept, "what another store has of runs", attaching},
		{!kept, "grants at once", grantsAtOnce},
	} {
		test(c.name, c.kept, func(t *testing.T) { c.test(t, open(t, nil)) })
	}
	for _, c := range []struct {
		kept bool
		name string
		test func(t *testing.T, s history.Store, c *clock)
	}{
		{kept, "leases of processes", processLeases},
		{kept, "claims", claims},
		{!kept, "a clock that steps back", clockStepsBack},
		{kept, "owners of batches", batchOwners},
		{kept, "refused owners", refusedOwners},
		{kept, "departed processes", departedProcesses},
		{kept, "overviews", overviews},
		{kept, "runs without an owner", unowned},
		{kept, "deliveries", deliveries},
		{kept, "claims of deliveries", deliveryClaims},
		{!kept, "one of many senders wins", oneSenderWins},
		{!kept, "one of many claimers wins", oneClaimerWins},
		{!kept, "watching", watching},
		{kept, "order of ready runs", readyOrder},
		{!kept, "fairness of ready runs", readyFairness},
		{kept, "list of ready runs", readyList},
		{kept, "turns of ready runs", readyTurns},
		{kept, "ready longest", readyOldest},
		{kept, "batches that make runs ready", readyBatches},
		{kept, "ends of readiness", readyEnds},
		{kept, "offers", offers},
		{kept, "names of lanes", laneNames},
		{!kept, "one of many claimers of ready runs wins", oneReadyClaimerWins},
		{!kept, "watching ready runs", watchingReady},
		{kept, "descriptions of processes", descriptions},
		{kept, "shared limits", sharedLimits},
		{kept, "classes without a shared limit", sharedWithoutLimit},
		{kept, "slots", slots},
		{kept, "slots of ended processes", slotsOfTheDead},
		{kept, "fair shares of slots", fairShares},
		{kept, "start times", starts},
		{kept, "unused start times", unusedStarts},
		{!kept, "rate of start times", startRate},
	} {
		test(c.name, c.kept, func(t *testing.T) {
			k := newClock()
			c.test(t, open(t, k.now), k)
		})
	}
}

// wantCode fails the test unless err has the code.
func wantCode(t *testing.T, err error, code problem.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Errorf("got error %v, want code %s", err, code)
	}
}

// wantRefusal is wantCode for calls that return a value.
func wantRefusal(t *testing.T, code problem.Code) func(_ any, err error) {
	return func(_ any, err error) {
		t.Helper()
		wantCode(t, err, code)
	}
}

// wantPosition compares the position of a run. An absent position has the seq 0, and is nil.
func wantPosition(t *testing.T, s history.Store, id string, wantSeq int64, want string) {
	t.Helper()
	if seq, data, err := s.Position(t.Context(), id); seq != wantSeq || string(data) != want || (data == nil) != (seq == 0) || err != nil {
		t.Errorf("got position %d %q of %q, %v, want %d %q", seq, data, id, err, wantSeq, want)
	}
}

// must fails the test at once if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// got is must for calls that return a value.
func got[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// fill sets the optional parts of a batch.
func fill(b *history.Batch) {
	b.Position = []byte("position")
	b.SetTimers, b.Timers = true, []history.Timer{{Key: "k", Due: Begin}}
	b.Definition = &history.StoredDefinition{Hash: "h", Name: "w", Version: "1", Text: []byte(`{"a":1}`)}
}

// read returns all records of a run.
func read(t testing.TB, s history.Store, id string) []history.Record {
	t.Helper()
	return got[[]history.Record](t)(s.Read(t.Context(), id, 1, 0))
}

// names returns the names of records.
func names(rs []history.Record) []history.Name {
	var out []history.Name
	for i := range rs {
		out = append(out, rs[i].Name)
	}
	return out
}
