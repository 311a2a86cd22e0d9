package historysql

import (
	"embed"
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/history"
)

//go:embed queries
var queryFiles embed.FS

// sqlText returns the statement in a file of the folder queries.
func sqlText(name string) string {
	text, err := queryFiles.ReadFile("queries/" + name + ".sql")
	if err != nil {
		panic(err)
	}
	return string(text)
}

// The statements of the package, one file each.
var (
	identify             = sqlText("identify")
	insertRows           = sqlText("insert_rows")
	advanceExecution     = sqlText("advance_execution")
	moveExecution        = sqlText("move_execution")
	setDriven            = sqlText("set_driven")
	putExecution         = sqlText("put_execution")
	batchStored          = sqlText("batch_stored")
	rowExists            = sqlText("row_exists")
	drivenBehind         = sqlText("driven_behind")
	markSeen             = sqlText("mark_seen")
	nextUnseen           = sqlText("next_unseen")
	readRows             = sqlText("read_rows")
	readExecution        = sqlText("read_execution")
	readPhase            = sqlText("read_phase")
	readPosition         = sqlText("read_position")
	putPosition          = sqlText("put_position")
	dropPosition         = sqlText("drop_position")
	listPage             = sqlText("list_page")
	listRange            = sqlText("list_range")
	listEach             = sqlText("list_each")
	putDefinition        = sqlText("put_definition")
	readDefinition       = sqlText("read_definition")
	readSignatures       = sqlText("read_signatures")
	readDefinitionByName = sqlText("read_definition_by_name")
	putTimer             = sqlText("put_timer")
	dropTimers           = sqlText("drop_timers")
	dropOtherTimers      = sqlText("drop_other_timers")
	dueTimers            = sqlText("due_timers")
	nextTimer            = sqlText("next_timer")
	readShortRow         = sqlText("read_short_row")
	readStates           = sqlText("read_states")
	markShort            = sqlText("mark_short")
	putBlob              = sqlText("put_blob")
	putBlobRef           = sqlText("put_blob_ref")
	readBlob             = sqlText("read_blob")
	blobBytes            = sqlText("blob_bytes")
	dropBlobs            = sqlText("drop_blobs")
	dropBlobRefs         = sqlText("drop_blob_refs")
	readClocks           = sqlText("read_clocks")
	putClock             = sqlText("put_clock")
	renewProcess         = sqlText("renew_process")
	releaseProcess       = sqlText("release_process")
	dropProcesses        = sqlText("drop_processes")
	ownedElsewhere       = sqlText("owned_elsewhere")
	claimExecution       = sqlText("claim_execution")
	disownExecution      = sqlText("disown_execution")
	readOwner            = sqlText("read_owner")
	ownedExecutions      = sqlText("owned")
	departedProcesses    = sqlText("departed")
	unownedExecutions    = sqlText("unowned")
	pruneCandidates      = sqlText("prune_candidates")
	pruneTree            = sqlText("prune_tree")
	pruneWeight          = sqlText("prune_weight")
	pruneMark            = sqlText("prune_mark")
	pruneRows            = sqlText("prune_rows")
	pruneNextMarked      = sqlText("prune_next_marked")
	pruneCountMarked     = sqlText("prune_count_marked")
	dropExecution        = sqlText("drop_execution")
	dropLease            = sqlText("drop_lease")
	definitionHashes     = sqlText("definition_hashes")
	allDefinitions       = sqlText("all_definitions")
	dropDefinition       = sqlText("drop_definition")
	fileSize             = sqlText("size")
	addProbe             = sqlText("add_probe")
	dropProbe            = sqlText("drop_probe")
	verifyIDs            = sqlText("verify_ids")
	verifyExecution      = sqlText("verify_execution")
	verifySideTables     = sqlText("verify_side_tables")
	allBlobs             = sqlText("all_blobs")
	dropOrphan           = sqlText("drop_orphan")
	blobsOf              = sqlText("blobs_of")
	integrityCheck       = sqlText("integrity_check")
	newestRow            = sqlText("newest_row")
	changedRuns          = sqlText("changed_runs")
	insertRow            = sqlText("insert_row")
	weigh                = sqlText("weigh")
	treeUse              = sqlText("tree_use")
	readKey              = sqlText("read_key")
	putKey               = sqlText("put_key")
	putDeliveryEvent     = sqlText("put_delivery_event")
	putDelivery          = sqlText("put_delivery")
	dueDeliveries        = sqlText("due_deliveries")
	claimDelivery        = sqlText("claim_delivery")
	beginDeliveryAttempt = sqlText("begin_delivery_attempt")
	endDeliveryAttempt   = sqlText("end_delivery_attempt")
	settleDelivery       = sqlText("settle_delivery")
	requeueDelivery      = sqlText("requeue_delivery")
	readDelivery         = sqlText("read_delivery")
	listDeliveries       = sqlText("list_deliveries")
	deliveryAttempts     = sqlText("delivery_attempts")
	pendingDelivery      = sqlText("pending_delivery")
	dropDeliveryAttempts = sqlText("drop_delivery_attempts")
	dropDeliveries       = sqlText("drop_deliveries")
	putLink              = sqlText("put_link")
	linksOf              = sqlText("links_of")
	putHandled           = sqlText("put_handled")
	handleEnded          = sqlText("handle_ended")
	handledByRetry       = sqlText("handled_by_retry")
	readHandled          = sqlText("read_handled")
	dropHandled          = sqlText("drop_handled")
	dropLinks            = sqlText("drop_links")
	dropDeliveryEvents   = sqlText("drop_delivery_events")
	dropLostAttempts     = sqlText("drop_lost_attempts")
	lostAttempts         = sqlText("lost_attempts")
	dropLostDeliveries   = sqlText("drop_lost_deliveries")
)

// listStatement returns the query of a page of runs in some phases, of a definition, with labels, below a run, without subworkflows, or
// without those that are handled if filtered by these.
// Each phase is a range of an index. The page is merged from the first runs of each range, with all those of the last one's tenth
// of a second. Labels are in no index: each run of the ranges is looked at. The runs below another one are a range of ids, and each is
// looked at too.
func listStatement(phases []history.Phase, definition, labels, below, roots, unhandled bool) string {
	index, filter, text := "executions_by_phase", "", listRange
	if definition {
		index, filter = "executions_by_definition", "definition_name = ?5 AND "
	}
	if labels || below || roots || unhandled {
		text = listEach
	}
	if roots {
		filter += "instr(execution_id, '" + history.ChildMark + "') = 0 AND "
	}
	if unhandled {
		filter += "NOT (phase IN ('failed', 'cancelled') AND EXISTS (SELECT 1 FROM handled AS h WHERE h.execution_id IN " +
			"(executions.execution_id, substr(executions.execution_id, 1, instr(executions.execution_id, '" + history.ChildMark + "') - 1)))) AND "
	}
	ranges := make([]string, len(phases))
	for i, p := range phases {
		ranges[i] = fmt.Sprintf("'%s'", p)
	}
	if below {
		index, filter = "sqlite_autoindex_executions_1", filter+"execution_id >= ?10 AND execution_id < ?11 AND "
		ranges = []string{strings.Join(ranges, ", ")}
	}
	for i, in := range ranges {
		ranges[i] = fmt.Sprintf(text, index, fmt.Sprintf("%sphase IN (%s)", filter, in))
	}
	page := "SELECT * FROM (" + strings.Join(ranges, " UNION ALL ") + ") ORDER BY updated_at DESC, execution_id LIMIT ?1"
	return fmt.Sprintf(listPage, page)
}
