package historysql

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/history"
)

// The statements of the package, one file each.
var (
	//go:embed queries/identify.sql
	identify string
	//go:embed queries/insert_rows.sql
	insertRows string
	//go:embed queries/advance_execution.sql
	advanceExecution string
	//go:embed queries/move_execution.sql
	moveExecution string
	//go:embed queries/set_driven.sql
	setDriven string
	//go:embed queries/put_execution.sql
	putExecution string
	//go:embed queries/row_exists.sql
	rowExists string
	//go:embed queries/driven_behind.sql
	drivenBehind string
	//go:embed queries/mark_seen.sql
	markSeen string
	//go:embed queries/next_unseen.sql
	nextUnseen string
	//go:embed queries/read_rows.sql
	readRows string
	//go:embed queries/read_execution.sql
	readExecution string
	//go:embed queries/read_phase.sql
	readPhase string
	//go:embed queries/read_position.sql
	readPosition string
	//go:embed queries/list_page.sql
	listPage string
	//go:embed queries/list_range.sql
	listRange string
	//go:embed queries/put_definition.sql
	putDefinition string
	//go:embed queries/read_definition.sql
	readDefinition string
	//go:embed queries/read_definition_by_name.sql
	readDefinitionByName string
	//go:embed queries/put_timer.sql
	putTimer string
	//go:embed queries/drop_timers.sql
	dropTimers string
	//go:embed queries/drop_other_timers.sql
	dropOtherTimers string
	//go:embed queries/due_timers.sql
	dueTimers string
	//go:embed queries/next_timer.sql
	nextTimer string
	//go:embed queries/read_short_row.sql
	readShortRow string
	//go:embed queries/read_states.sql
	readStates string
	//go:embed queries/mark_short.sql
	markShort string
	//go:embed queries/put_blob.sql
	putBlob string
	//go:embed queries/put_blob_ref.sql
	putBlobRef string
	//go:embed queries/read_blob.sql
	readBlob string
	//go:embed queries/blob_bytes.sql
	blobBytes string
	//go:embed queries/drop_blobs.sql
	dropBlobs string
	//go:embed queries/drop_blob_refs.sql
	dropBlobRefs string
)

// listStatements holds the queries of a page without filters, by phase, by definition, and by both. Each phase is a
// range of an index. The page is merged from the first runs of each range, with all those of the last one's tenth of a
// second.
var listStatements = sync.OnceValue(func() map[listFilter]string {
	const definition = "definition_name = ?5 AND "
	var anyPhase []string
	for _, p := range history.Phases() {
		anyPhase = append(anyPhase, fmt.Sprintf("phase = '%s'", p))
	}
	onePhase := []string{"phase = ?6"}
	return map[listFilter]string{
		{}:                              listStatement("executions_by_phase", "", anyPhase),
		{phase: true}:                   listStatement("executions_by_phase", "", onePhase),
		{definition: true}:              listStatement("executions_by_definition", definition, anyPhase),
		{phase: true, definition: true}: listStatement("executions_by_definition", definition, onePhase),
	}
})

type listFilter struct{ phase, definition bool }

func listStatement(index, filter string, phases []string) string {
	ranges := make([]string, len(phases))
	for i, phase := range phases {
		ranges[i] = fmt.Sprintf(listRange, index, filter+phase)
	}
	page := "SELECT * FROM (" + strings.Join(ranges, " UNION ALL ") + ") ORDER BY updated_at DESC, execution_id LIMIT ?1"
	return fmt.Sprintf(listPage, page)
}
