package historytest

import (
	"errors"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Open returns an empty store, which it closes when the test ends. The store judges leases by now; nil means by a clock
// of its own.
type Open func(t testing.TB, now func() time.Time) history.Store

// Run runs all tests of the contract, each with a store of its own.
func Run(t *testing.T, open Open) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s history.Store)
	}{
		{"append and read", appendAndRead},
		{"read in parts", readInParts},
		{"records come back as written", recordsComeBack},
		{"seqs of records are ignored", seqsAreIgnored},
		{"conflicts change nothing", conflictsChangeNothing},
		{"a faulty batch is refused", faultyBatchIsRefused},
		{"long batches", longBatches},
		{"large payloads", largePayloads},
		{"changing states", changingStates},
		{"bytes are counted", bytesAreCounted},
		{"unusual ids", unusualIDs},
		{"unknown ids", unknownIDs},
		{"one of many appenders wins", oneAppenderWins},
		{"appends to many runs", appendsToManyRuns},
		{"cancelled contexts", cancelledContexts},
		{"closed", closedStore},
		{"what was given can be changed", givenValuesAreIsolated},
		{"what was got can be changed", gotValuesAreIsolated},
		{"projection equals the fold", projectionEqualsFold},
		{"positions", positions},
		{"definitions", definitions},
		{"timers", timers},
		{"a run's end drops timers and position", endDropsTimers},
		{"orphans with subworkflows", orphanedParents},
		{"orphaned subworkflows", orphanedChildren},
		{"list order and pages", listPages},
		{"list of many times", listManyTimes},
		{"list filters", listFilters},
		{"list follows appends", listFollowsAppends},
		{"list cursors and limits", listArguments},
		{"importing", importing},
		{"pruning", pruning},
		{"pruning arguments", pruningArguments},
		{"pruning large trees", pruningLarge},
		{"pruning definitions", pruningDefinitions},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open(t, nil))
		})
	}
	for _, c := range []struct {
		name string
		test func(t *testing.T, s history.Store, c *clock)
	}{
		{"leases of processes", processLeases},
		{"claims", claims},
		{"owners of batches", batchOwners},
		{"refused owners", refusedOwners},
		{"departed processes", departedProcesses},
		{"runs without an owner", unowned},
		{"one of many claimers wins", oneClaimerWins},
		{"watching", watching},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
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

// must fails the test at once if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// got is must for calls that give a value.
func got[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// read gives all records of a run.
func read(t testing.TB, s history.Store, id string) []history.Record {
	t.Helper()
	return got[[]history.Record](t)(s.Read(t.Context(), id, 1, 0))
}

// names lists records by name.
func names(rs []history.Record) []history.Name {
	var out []history.Name
	for i := range rs {
		out = append(out, rs[i].Name)
	}
	return out
}
