package history

import (
	"math"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// RowVersion returns the record schema version of a stored value: the value itself if it is an integer of at least 1, else 1
// (spec: execution, 10.7). Stored values are int64, float64, string, []byte or nil, as SQL drivers return them.
func RowVersion(stored any) int64 {
	switch v := stored.(type) {
	case int64:
		return max(v, 1)
	case float64:
		if v == math.Trunc(v) && v >= 1 && v < math.MaxInt64 {
			return int64(v)
		}
	}
	return 1
}

// CheckRowVersion refuses rows of a newer version than this package knows, with HISTORY_VERSION_UNSUPPORTED.
func CheckRowVersion(executionID string, seq int64, stored any) error {
	v := RowVersion(stored)
	if v <= RecordSchemaVersion {
		return nil
	}
	return problem.New(problem.HistoryNewer, "record %d of run %q has version %d; this engine reads up to %d",
		seq, executionID, v, RecordSchemaVersion).
		WithPlace(problem.Place{ExecutionID: executionID}).
		WithHint("A newer engine wrote to this run. Continue it with that engine, or update this one.")
}
