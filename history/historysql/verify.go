package historysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/shortform"
)

var _ history.Verifier = (*Store)(nil)

const (
	doingVerify    = "the database could not be checked"
	hintDamaged    = "Stop what uses the file, keep a copy of it with its -wal file, and restore the last backup."
	hintProject    = "Repair it with Runner.Verify: it builds the projection from the records again."
	hintMissingRef = "Repair it with Runner.Verify before the next deletion of runs: it adds the references, without which the deletion of other runs deletes the blobs."
	hintKept       = "Nothing yet: the blob only takes space. Runner.Verify deletes it once every run can be read."
	hintOrphaned   = "Repair it with Runner.Verify: it deletes the row, which nothing needs."
)

// Verify checks one run or the whole store; see history.Verifier.
func (s *Store) Verify(ctx context.Context, executionID string, repair bool, report func(history.Finding)) (history.Verified, error) {
	v := &verifier{store: s, ctx: ctx, repair: repair, report: report, needed: map[string]bool{}}
	ids := []string{executionID}
	if executionID == "" {
		var err error
		if ids, err = v.whole(); err != nil {
			return v.counts, failure(doingVerify, err)
		}
	}
	for _, id := range ids {
		err := v.run(id)
		if err == nil && executionID != "" && v.counts.Runs == 0 {
			err = history.NotFound(id)
		}
		if primaryCode(err) == sqlite3.SQLITE_CORRUPT {
			v.note(id, 0, problem.DatabaseDamaged, hintDamaged, "the run cannot be read: %v", err)
			v.unread, err = true, nil
		}
		if err != nil {
			return v.counts, failure(doingVerify, err)
		}
	}
	if executionID == "" {
		for _, lost := range lostRows {
			if err := v.lost(lost.of, lost.message); err != nil && primaryCode(err) != sqlite3.SQLITE_CORRUPT {
				return v.counts, failure(doingVerify, err)
			}
		}
	}
	return v.counts, failure(doingVerify, v.orphans())
}

type verifier struct {
	store  *Store
	ctx    context.Context
	repair bool
	report func(history.Finding)
	counts history.Verified

	// unreferenced holds the hashes of blobs without references, needed the hashes of blobs that a run needs without a reference. unread
	// reports that a record of some run could not be read.
	unreferenced []string
	needed       map[string]bool
	unread       bool
}

func (v *verifier) note(id string, seq int64, code problem.Code, hint, format string, args ...any) {
	v.report(history.Finding{ExecutionID: id, Seq: seq, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint})
}

const (
	verifyIDs = `SELECT execution_id FROM (
    SELECT DISTINCT execution_id FROM history UNION SELECT execution_id FROM executions
    UNION SELECT execution_id FROM timers UNION SELECT execution_id FROM blob_refs
    UNION SELECT execution_id FROM deliveries UNION SELECT execution_id FROM delivery_events
    UNION SELECT to_id FROM run_links UNION SELECT from_id FROM run_links UNION SELECT execution_id FROM handled
) ORDER BY execution_id`
	allBlobs       = `SELECT hash, content, (SELECT count(*) FROM blob_refs WHERE blob = number) FROM blobs ORDER BY number`
	integrityCheck = `PRAGMA integrity_check(100)`
)

// whole checks the file, the definitions and the blobs, and returns the ids of all runs.
func (v *verifier) whole() (ids []string, err error) {
	in := reader{v.ctx, &v.store.readers}
	err = in.query(integrityCheck, func(row []driver.Value) error {
		if text := textOf(row[0]); text != "ok" {
			v.note("", 0, problem.DatabaseDamaged, hintDamaged, "%s", text)
		}
		return nil
	})
	if err == nil {
		err = in.query(allDefinitions, func(row []driver.Value) error {
			v.counts.Definitions++
			if hash := textOf(row[0]); hash != shortform.HashOf([]byte(textOf(row[3]))) {
				v.note("", 0, problem.DefinitionHashMismatch, "Restore the database from a backup, or delete this row and store the definition again.",
					"the text of the definition %q does not match its hash %s", textOf(row[1]), hash)
			}
			return nil
		})
	}
	if err == nil {
		err = in.query(allBlobs, func(row []driver.Value) error {
			hash, content := textOf(row[0]), textOf(row[1])
			if shortform.HashOf([]byte(content)) != hash {
				v.note("", 0, problem.BlobDamaged, hintDamaged, "the content of blob %s does not match its hash", hash)
			}
			if held, _ := row[2].(int64); held == 0 {
				v.unreferenced = append(v.unreferenced, hash)
			}
			return nil
		})
	}
	if err == nil {
		ids, err = column(in, verifyIDs)
	}
	if primaryCode(err) == sqlite3.SQLITE_CORRUPT {
		v.note("", 0, problem.DatabaseDamaged, hintDamaged, "%v", err)
		err = nil
	}
	return ids, err
}

// stored is a run's row of the table executions.
type stored struct {
	found                               bool
	seq, created, updated, driven       int64
	ready, claimable                    bool
	phase, name, projection, unreadable sql.NullString
	labels                              string // as a JSON object
	timers, blobs                       int64
	// notices counts the delivery rows, lost the deliveries without a body.
	notices, lost int64
	// links counts the rows that link the run to others, handled its mark as handled.
	links, handled int64
}

const (
	verifyExecution = `SELECT seq, phase, definition_name, created_at, updated_at, driven, projection, problem,
    (SELECT json_group_object(name, value) FROM run_labels WHERE run_labels.run = executions.run),
    EXISTS (SELECT 1 FROM ready WHERE ready.run = executions.run), owner IS NULL AND phase NOT IN ('completed', 'failed', 'cancelled', 'deleted')
FROM executions WHERE execution_id = ?1`
	verifySideTables = `SELECT (SELECT count(*) FROM timers WHERE execution_id = ?1), (SELECT count(*) FROM blob_refs WHERE execution_id = ?1),
    (SELECT count(*) FROM deliveries WHERE execution_id = ?1) + (SELECT count(*) FROM delivery_events WHERE execution_id = ?1),
    (SELECT count(*) FROM run_links WHERE to_id = ?1 OR from_id = ?1),
    (SELECT count(*) FROM handled WHERE execution_id = ?1),
    (SELECT count(*) FROM deliveries AS d LEFT JOIN delivery_events AS e ON e.event_id = d.event_id WHERE d.execution_id = ?1 AND e.event_id IS NULL)`
)

// run checks one run in a snapshot.
func (v *verifier) run(id string) error {
	in, end, err := v.store.readers.snapshot(v.ctx)
	if err != nil {
		return err
	}
	defer end()
	tx := in.tx
	var row stored
	err = tx.QueryRowContext(v.ctx, verifyExecution, id).Scan(&row.seq, &row.phase, &row.name, &row.created, &row.updated, &row.driven, &row.projection, &row.unreadable, &row.labels, &row.ready, &row.claimable)
	switch {
	case err == nil:
		row.found = true
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	if err := tx.QueryRowContext(v.ctx, verifySideTables, id).Scan(&row.timers, &row.blobs, &row.notices, &row.links, &row.handled, &row.lost); err != nil {
		return err
	}
	if row.phase.String == markDeleted {
		v.counts.Runs++
		v.note(id, 0, problem.DeletionUnfinished, "Run workflows-engine db prune: it finishes the deletion.", "the deletion of the run is not finished; the run counts as deleted")
		return nil
	}
	audit := history.Audit{ExecutionID: id}
	rows, err := rowsOf(in, id, math.MinInt64, -1)
	if err != nil {
		return err
	}
	if err := tx.Rollback(); err != nil { // referenced data never changes, and is read through other connections
		return err
	}
	if len(rows) > 0 || row.found {
		v.counts.Runs++
	}
	if len(rows) == 0 {
		return v.withoutRecords(id, &row)
	}
	v.counts.Records += int64(len(rows))
	noting := &recordingShelf{Shelf: shelf{reader{v.ctx, &v.store.readers}}, hashes: map[string]bool{}}
	x := newRowReader(id, noting, false)
	// seen is the fold up to the last record of the stored projection.
	var seen history.Execution
	var record history.Record
	var unreadable error
	for i := range rows {
		record, unreadable = x.record(&rows[i])
		if _, ok := problem.As(unreadable); !ok && unreadable != nil {
			return unreadable // an error of the database
		}
		audit.Record(&record, unreadable)
		audit.Text(rows[i].seq, rows[i].payload)
		if rows[i].seq == row.seq {
			seen = audit.Execution
		}
		rows[i] = storedRow{}
	}
	missing, err := v.missingRefs(id, noting.hashes)
	if err != nil {
		return err
	}
	if there, err := v.store.readers.holds(v.ctx, id, audit.Execution.Seq); err != nil || !there {
		return err // the run was deleted meanwhile
	}
	if err := v.lostDeliveries(id, row.lost); err != nil {
		return err
	}
	for _, f := range audit.Findings {
		v.unread = v.unread || unreadableRecord(f)
		v.report(f)
	}
	if err := v.addRefs(id, missing); err != nil {
		return err
	}
	return v.sideTables(id, &row, &audit, &seen)
}

// recordingShelf records the hashes of the blobs read.
type recordingShelf struct {
	shortform.Shelf
	hashes map[string]bool
}

// Blob implements shortform.Shelf.
func (s *recordingShelf) Blob(hash string) (string, error) {
	content, err := s.Shelf.Blob(hash)
	if content != "" {
		s.hashes[hash] = true
	}
	return content, err
}

const blobsOf = `SELECT hash FROM blobs JOIN blob_refs ON blob = number WHERE execution_id = ?1`

// missingRefs returns the needed blobs without a reference from the run. They would be deleted with the last run that has one.
func (v *verifier) missingRefs(id string, needed map[string]bool) ([]string, error) {
	held, err := column(reader{v.ctx, &v.store.readers}, blobsOf, id)
	missing := maps.Clone(needed)
	for _, hash := range held {
		delete(missing, hash)
	}
	return slices.Sorted(maps.Keys(missing)), err
}

// addRefs reports blobs that a run needs without a reference; a repair adds the references.
func (v *verifier) addRefs(id string, hashes []string) error {
	if len(hashes) == 0 {
		return nil
	}
	for _, hash := range hashes {
		v.needed[hash] = true
	}
	f := history.Finding{
		ExecutionID: id, Code: problem.BlobDamaged, Hint: hintMissingRef,
		Message: fmt.Sprintf("the run needs %d blobs that it has no reference to", len(hashes)),
	}
	return v.fix(&f, func(c *conn) error {
		if found, err := c.one(rowExists, id, int64(1)); err != nil || found == nil {
			return err
		}
		for _, hash := range hashes {
			if _, err := c.exec(putBlobRef, id, hash); err != nil {
				return err
			}
		}
		return nil
	})
}

const dropLostDeliveries = `DELETE FROM deliveries WHERE execution_id = ?1 AND event_id NOT IN (SELECT event_id FROM delivery_events WHERE execution_id = ?1)`

// lostDeliveries reports deliveries without a body; a repair deletes them.
func (v *verifier) lostDeliveries(id string, n int64) error {
	if n == 0 {
		return nil
	}
	f := history.Finding{ExecutionID: id, Code: problem.RowOrphaned, Hint: hintOrphaned, Message: fmt.Sprintf("the bodies of %d deliveries are missing", n)}
	return v.fix(&f, func(c *conn) error {
		_, err := c.exec(dropLostDeliveries, id)
		return err
	})
}

// lostRows are rows without the row that they belong to. They are of no run.
var lostRows = []struct{ of, message string }{
	{"FROM delivery_attempts WHERE delivery NOT IN (SELECT number FROM deliveries)", "%d attempts belong to no delivery"},
	{"FROM run_labels WHERE run NOT IN (SELECT run FROM executions)", "%d labels belong to no run"},
	{"FROM ready WHERE run NOT IN (SELECT run FROM executions)", "%d ready runs do not exist"},
	{"FROM shares WHERE class NOT IN (SELECT class FROM limits)", "%d shares of processes belong to no limit"},
}

// lost reports rows without the row that they belong to; a repair deletes them.
func (v *verifier) lost(of, message string) error {
	var n int64
	if _, err := v.store.readers.row(v.ctx, "SELECT count(*) "+of, nil, &n); err != nil || n == 0 {
		return err
	}
	f := history.Finding{Code: problem.RowOrphaned, Hint: hintOrphaned, Message: fmt.Sprintf(message, n)}
	return v.fix(&f, func(c *conn) error {
		_, err := c.exec("DELETE " + of)
		return err
	})
}

const dropOrphan = `DELETE FROM blobs WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM blob_refs WHERE blob = number)`

// orphans reports unused blobs, after all runs have been read. A repair deletes them, unless some run could not be read and may need them.
func (v *verifier) orphans() error {
	for _, hash := range v.unreferenced {
		if v.needed[hash] {
			continue // reported with the run that needs it
		}
		f := history.Finding{Code: problem.RowOrphaned, Hint: hintOrphaned, Message: fmt.Sprintf("no run refers to blob %s", hash)}
		if v.unread {
			f.Hint = hintKept
			v.report(f)
			continue
		}
		if err := v.fix(&f, func(c *conn) error {
			_, err := c.exec(dropOrphan, hash)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// withoutRecords reports rows of a missing run.
func (v *verifier) withoutRecords(id string, row *stored) error {
	if !row.found && row.timers == 0 && row.blobs == 0 && row.notices == 0 && row.links == 0 && row.handled == 0 {
		return nil
	}
	f := history.Finding{
		ExecutionID: id, Code: problem.RowOrphaned, Hint: hintOrphaned,
		Message: fmt.Sprintf("the run has no records, but a projection (%t), %d timers, %d references to blobs, %d rows of deliveries, %d links to other runs and %d marks as handled",
			row.found, row.timers, row.blobs, row.notices, row.links, row.handled),
	}
	return v.fix(&f, func(c *conn) error {
		if found, err := c.one(rowExists, id, int64(1)); err != nil || found != nil {
			return err
		}
		return dropRun(c, id)
	})
}

// sideTables compares the projection and the timers with the records.
func (v *verifier) sideTables(id string, row *stored, audit *history.Audit, seen *history.Execution) error {
	e := &audit.Execution
	differs := ""
	switch {
	case row.unreadable.Valid && len(audit.Findings) > 0, slices.ContainsFunc(audit.Findings, unreadableRecord):
		return nil // the records cannot be compared
	case !row.found:
		differs = "there is no projection"
	case !row.found:
		return nil // another engine began the run, and no projection was stored yet
	case row.unreadable.Valid:
		differs = "the run is marked as unreadable, but can be read"
	case seen.Seq != row.seq || !seen.WrittenAs(row.projection.String):
		differs = fmt.Sprintf("the projection at record %d does not match the records", row.seq)
	case row.seq < e.Seq:
		differs = fmt.Sprintf("the projection ends at record %d, the run at record %d", row.seq, e.Seq)
	case row.phase.String != string(seen.Phase) || row.name.String != seen.DefinitionName ||
		!row.hasLabels(seen) || row.created != seen.CreatedAt.UnixMilli() || row.updated != seen.UpdatedAt.UnixMilli() || !row.isDriven(seen):
		differs = "the columns and labels that lists use do not match the projection"
	}
	if differs != "" {
		f := history.Finding{ExecutionID: id, Code: problem.ProjectionDiffers, Message: differs, Hint: hintProject}
		if err := v.fix(&f, func(c *conn) error { return foldAnew(c, id) }); err != nil {
			return err
		}
	}
	if row.ready && !row.claimable {
		f := history.Finding{ExecutionID: id, Code: problem.RowOrphaned, Hint: hintOrphaned, Message: "the run is ready, but has ended or has an owner"}
		if err := v.fix(&f, func(c *conn) error {
			_, err := c.exec(dropUnclaimable, id)
			return err
		}); err != nil {
			return err
		}
	}
	if e.Phase.Terminal() && row.timers > 0 {
		f := history.Finding{ExecutionID: id, Code: problem.RowOrphaned, Hint: hintOrphaned, Message: fmt.Sprintf("the run has ended, but has %d timers", row.timers)}
		return v.fix(&f, func(c *conn) error {
			_, err := c.exec(dropTimers, id)
			return err
		})
	}
	return nil
}

const dropUnclaimable = `DELETE FROM ready WHERE run = (
    SELECT run FROM executions WHERE execution_id = ?1 AND (owner IS NOT NULL OR phase IN ('completed', 'failed', 'cancelled', 'deleted')))`

// isDriven reports whether the column driven is that of a run; it is 2 only while the run is ready.
func (row *stored) isDriven(e *history.Execution) bool {
	want := flag(e.NeedsDriver())
	return row.driven == want || row.driven == 2 && want == 1 && row.ready
}

// hasLabels reports whether the stored labels are those of a run.
func (row *stored) hasLabels(e *history.Execution) bool {
	var labels map[string]string
	return json.Unmarshal([]byte(row.labels), &labels) == nil && maps.Equal(labels, e.Labels)
}

func unreadableRecord(f history.Finding) bool {
	return f.Code == problem.RecordUnreadable || f.Code == problem.HistoryNewer
}

// fix repairs the problem of a finding, if requested, and reports the finding.
func (v *verifier) fix(f *history.Finding, repair func(c *conn) error) error {
	var err error
	if v.repair {
		err = v.store.write(v.ctx, "the finding was not repaired", repair)
		f.Repaired = err == nil
	}
	v.report(*f)
	return err
}

// foldAnew rebuilds a run's projection from its records and stores it.
func foldAnew(c *conn, id string) error {
	f := &folding{execution: history.Execution{ID: id}}
	large, err := c.one(blobBytes, id)
	if err != nil {
		return err
	}
	f.execution.Bytes, _ = large.(int64)
	return f.finish(c, math.MinInt64)
}
