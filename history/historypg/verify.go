package historypg

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/shortform"
)

var _ history.Verifier = (*Store)(nil)

const (
	doingVerify  = "the store could not be checked"
	hintProject  = "Repair it with Runner.Verify: it builds the projection from the records again."
	hintOrphaned = "Repair it with Runner.Verify: it deletes the row, which nothing needs."
	hintLost     = "Keep a copy of the tables, and restore the last backup. Records are never repaired."
)

// Verify checks one run or the whole store; see history.Verifier. Damaged files are for the server's own amcheck.
func (s *Store) Verify(ctx context.Context, executionID string, repair bool, report func(history.Finding)) (history.Verified, error) {
	v := &verifier{store: s, ctx: ctx, repair: repair, report: report}
	if err := s.enter(ctx, doingVerify); err != nil {
		return v.counts, err
	}
	ids := []string{executionID}
	if executionID == "" {
		var err error
		if ids, err = v.whole(); err != nil {
			return v.counts, err
		}
	}
	for _, id := range ids {
		err := v.run(id)
		if err == nil && executionID != "" && v.counts.Runs == 0 {
			err = history.NotFound(id)
		}
		if p, ok := problem.As(err); ok && p.Code == problem.HistoryCorrupt && p.At.ExecutionID == "" { // the server cannot read the rows
			v.report(history.Finding{ExecutionID: id, Code: problem.DatabaseDamaged, Message: fmt.Sprintf("the run cannot be read: %v", err), Hint: hintDamaged})
			err = nil
		}
		if err != nil {
			return v.counts, err
		}
	}
	return v.counts, nil
}

type verifier struct {
	store  *Store
	ctx    context.Context
	repair bool
	report func(history.Finding)
	counts history.Verified
}

// lostRows are rows without the row that they belong to. Their condition follows WHERE.
var lostRows = []struct{ table, condition, message string }{
	{"@timers", "run NOT IN (SELECT run FROM @runs)", "%d timers belong to no run"},
	{"@run_labels", "run NOT IN (SELECT run FROM @runs)", "%d labels belong to no run"},
	{"@ready", "run NOT IN (SELECT run FROM @runs)", "%d ready runs do not exist"},
	{"@blobs", "run NOT IN (SELECT run FROM @runs)", "%d large values belong to no run"},
	{"@shares", "class NOT IN (SELECT class FROM @limits)", "%d shares of processes belong to no limit"},
	{"@delivery_attempts", "delivery NOT IN (SELECT number FROM @deliveries)", "%d attempts belong to no delivery"},
	{"@deliveries", "run NOT IN (SELECT run FROM @runs)", "%d deliveries belong to no run"},
	{"@delivery_events", "run NOT IN (SELECT run FROM @runs)", "%d events belong to no run"},
	{"@run_links", "to_id NOT IN (SELECT execution_id FROM @runs) OR from_id NOT IN (SELECT execution_id FROM @runs)", "%d links belong to no run"},
	{"@handled", "execution_id NOT IN (SELECT execution_id FROM @runs)", "%d marks as handled belong to no run"},
}

const (
	lostRecords = `SELECT count(*), count(DISTINCT run) FROM @records WHERE run NOT IN (SELECT run FROM @runs)`
	verifyIDs   = `SELECT execution_id FROM @runs ORDER BY execution_id`
)

// whole checks the definitions and the rows of no run, and returns the ids of all runs.
func (v *verifier) whole() (ids []string, err error) {
	s := v.store
	var lost []history.Finding
	var clauses []int
	err = s.snapshot(v.ctx, doingVerify, func(q queries) error {
		lost, clauses, v.counts.Definitions = nil, nil, 0
		if _, err := q.Exec(v.ctx, unlimited); err != nil {
			return err
		}
		err := each(v.ctx, q, s.texts.of(allDefinitions), func(row pgx.Rows) error {
			v.counts.Definitions++
			d, err := scanDefinition(row)
			if err == nil && d.Hash != shortform.HashOf(d.Text) {
				lost, clauses = append(lost, history.Finding{
					Code: problem.DefinitionHashMismatch, Hint: "Restore the database from a backup, or delete this row and store the definition again.",
					Message: fmt.Sprintf("the text of the definition %q does not match its hash %s", d.Name, d.Hash),
				}), append(clauses, -1)
			}
			return err
		})
		if err != nil {
			return err
		}
		var n, of int64
		if _, err := first(v.ctx, q, s.texts.of(lostRecords), nil, &n, &of); err != nil {
			return err
		}
		if n > 0 {
			lost, clauses = append(lost, history.Finding{Code: problem.DatabaseDamaged, Hint: hintLost, Message: fmt.Sprintf("%d records of %d runs belong to no run", n, of)}), append(clauses, -1)
		}
		for i, l := range lostRows {
			if _, err := first(v.ctx, q, s.texts.of("SELECT count(*) FROM "+l.table+" WHERE "+l.condition), nil, &n); err != nil {
				return err
			}
			if n > 0 {
				lost, clauses = append(lost, history.Finding{Code: problem.RowOrphaned, Hint: hintOrphaned, Message: fmt.Sprintf(l.message, n)}), append(clauses, i)
			}
		}
		ids, err = column(v.ctx, q, s.texts.of(verifyIDs))
		return err
	})
	for i := range lost {
		if err != nil {
			break
		}
		if clauses[i] < 0 {
			v.report(lost[i])
			continue
		}
		l := lostRows[clauses[i]]
		err = v.fix(&lost[i], func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, s.texts.of("DELETE FROM "+l.table+" WHERE "+l.condition))
			return err
		})
	}
	return ids, err
}

// stored is a run's row of the table runs, and what other tables hold of it.
type stored struct {
	run, seq, created, updated, bytes int64
	driven                            int16
	phase, name, projection           string
	ready, claimable                  bool
	timers, lost                      int64 // lost counts the deliveries without a body
	labels                            map[string]string
	blobs                             map[string]bool  // whether the content matches the hash
	sizes                             map[string]int64 // of the blobs
	records                           []storedRow
}

const (
	verifyRun = `SELECT r.run, r.seq, r.created_at, r.updated_at, r.bytes, r.driven, r.phase, r.definition_name, r.projection,
    EXISTS (SELECT 1 FROM @ready AS q WHERE q.run = r.run), r.owner IS NULL AND r.phase NOT IN {ended},
    (SELECT count(*) FROM @timers AS t WHERE t.run = r.run),
    (SELECT count(*) FROM @deliveries AS d WHERE d.run = r.run AND NOT EXISTS (SELECT 1 FROM @delivery_events AS e WHERE e.event_id = d.event_id))
FROM @runs AS r WHERE r.execution_id = $1::text`
	labelsOf = `SELECT name, value FROM @run_labels WHERE run = $1::bigint`
	blobsOf  = `SELECT hash, content FROM @blobs WHERE run = $1::bigint`
)

// read reads a run in a snapshot; found is false for an unknown one.
func (v *verifier) read(q queries, id string) (row *stored, found bool, err error) {
	s := v.store
	row = &stored{labels: map[string]string{}, blobs: map[string]bool{}, sizes: map[string]int64{}}
	found, err = first(v.ctx, q, s.texts.of(verifyRun), []any{key(id)}, &row.run, &row.seq, &row.created, &row.updated, &row.bytes, &row.driven, &row.phase, &row.name,
		&row.projection, &row.ready, &row.claimable, &row.timers, &row.lost)
	if err != nil || !found || row.phase == deleted {
		return row, found, err
	}
	pair := func(text string, take func(a, b string)) {
		if err == nil {
			err = each(v.ctx, q, s.texts.of(text), func(row pgx.Rows) error {
				var a, b string
				err := row.Scan(&a, &b)
				take(unescaped(a), unescaped(b))
				return err
			}, row.run)
		}
	}
	pair(labelsOf, func(name, value string) { row.labels[name] = value })
	pair(blobsOf, func(hash, content string) {
		row.blobs[hash], row.sizes[hash] = shortform.HashOf([]byte(content)) == hash, int64(len(content))
	})
	if err == nil {
		row.records, err = s.rowsOf(v.ctx, q, id, math.MinInt64, 0)
	}
	return row, found, err
}

// run checks one run in a snapshot.
func (v *verifier) run(id string) error {
	s := v.store
	var row *stored
	var audit history.Audit
	var seen history.Execution // the fold up to the last record of the stored projection
	var used map[string]bool
	found := false
	err := s.snapshot(v.ctx, doingVerify, func(q queries) (err error) {
		if row, found, err = v.read(q, id); err != nil || !found || row.phase == deleted {
			return err
		}
		noting := &recordingShelf{Shelf: &shelf{v.ctx, s, q, id}, hashes: map[string]bool{}}
		x := newRowReader(id, noting, false)
		audit, used = history.Audit{ExecutionID: id}, noting.hashes
		for i := range row.records {
			record, unreadable := x.record(&row.records[i])
			if _, ok := problem.As(unreadable); !ok && unreadable != nil {
				return unreadable // an error of the database
			}
			audit.Record(&record, unreadable)
			audit.Text(row.records[i].seq, row.records[i].payload)
			if row.records[i].seq == row.seq {
				seen = audit.Execution
			}
		}
		return nil
	})
	switch {
	case err != nil || !found:
		return err
	case row.phase == deleted:
		v.counts.Runs++
		v.report(history.Finding{ExecutionID: id, Code: problem.DeletionUnfinished, Hint: "Run workflows-engine db prune: it finishes the deletion.", Message: "the deletion of the run is not finished; the run counts as deleted"})
		return nil
	}
	v.counts.Runs++
	v.counts.Records += int64(len(row.records))
	for _, f := range audit.Findings {
		v.report(f)
	}
	if len(row.records) == 0 {
		v.report(history.Finding{ExecutionID: id, Code: problem.RecordGap, Hint: hintLost, Message: fmt.Sprintf("all %d records of the run are missing", row.seq)})
		return nil
	}
	readable := !slices.ContainsFunc(audit.Findings, unreadableRecord)
	for _, check := range []func() error{
		func() error { return v.blobs(id, row, used, readable) },
		func() error { return v.lostDeliveries(id, row) },
		func() error { return v.sideTables(id, row, &audit, &seen, readable, row.size(used)) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// recordingShelf records the hashes of the blobs read.
type recordingShelf struct {
	shortform.Shelf
	hashes map[string]bool
}

// Blob implements shortform.Shelf.
func (s *recordingShelf) Blob(hash string) (string, error) {
	s.hashes[hash] = true
	return s.Shelf.Blob(hash)
}

const dropBlobs = `DELETE FROM @blobs WHERE run = $1::bigint AND hash = ANY ($2::text[]) AND EXISTS (SELECT 1 FROM @runs WHERE run = $1::bigint AND seq = $3::bigint)`

// blobs reports damaged blobs, and those that no record uses, which a repair deletes if all records can be read.
func (v *verifier) blobs(id string, row *stored, used map[string]bool, readable bool) error {
	var unused []string
	for _, hash := range slices.Sorted(maps.Keys(row.blobs)) {
		switch {
		case !row.blobs[hash]:
			v.report(history.Finding{ExecutionID: id, Code: problem.BlobDamaged, Hint: hintDamaged, Message: fmt.Sprintf("the content of blob %s does not match its hash", hash)})
		case !used[hash]:
			unused = append(unused, hash)
		}
	}
	if len(unused) == 0 || !readable {
		return nil
	}
	f := history.Finding{ExecutionID: id, Code: problem.RowOrphaned, Hint: hintOrphaned, Message: fmt.Sprintf("no record of the run refers to %d of its blobs", len(unused))}
	return v.fix(&f, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, v.store.texts.of(dropBlobs), row.run, unused, row.seq)
		return err
	})
}

const dropLostDeliveries = `DELETE FROM @deliveries AS d WHERE d.run = $1::bigint AND NOT EXISTS (SELECT 1 FROM @delivery_events AS e WHERE e.event_id = d.event_id)`

// lostDeliveries reports deliveries without a body; a repair deletes them.
func (v *verifier) lostDeliveries(id string, row *stored) error {
	if row.lost == 0 {
		return nil
	}
	f := history.Finding{ExecutionID: id, Code: problem.RowOrphaned, Hint: hintOrphaned, Message: fmt.Sprintf("the bodies of %d deliveries are missing", row.lost)}
	return v.fix(&f, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, v.store.texts.of(dropLostDeliveries), row.run)
		return err
	})
}

const (
	dropUnclaimable = `DELETE FROM @ready AS q WHERE q.run = $1::bigint AND EXISTS (SELECT 1 FROM @runs AS r WHERE r.run = q.run AND (r.owner IS NOT NULL OR r.phase IN {ended}))`
	dropEndedTimers = `DELETE FROM @timers AS t WHERE t.run = $1::bigint AND EXISTS (SELECT 1 FROM @runs AS r WHERE r.run = t.run AND r.phase IN {ended})`
)

// sideTables compares the projection, the place among the ready runs and the timers with the records.
func (v *verifier) sideTables(id string, row *stored, audit *history.Audit, seen *history.Execution, readable bool, size int64) error {
	if !readable {
		return nil // the records cannot be compared
	}
	e := &audit.Execution
	differs := ""
	switch {
	case seen.Seq != row.seq || !seen.WrittenAs(unescaped(row.projection)):
		differs = fmt.Sprintf("the projection at record %d does not match the records", row.seq)
	case row.seq < e.Seq:
		differs = fmt.Sprintf("the projection ends at record %d, the run at record %d", row.seq, e.Seq)
	case row.phase != string(seen.Phase) || unescaped(row.name) != seen.DefinitionName || row.created != seen.CreatedAt.UnixMilli() || row.updated != seen.UpdatedAt.UnixMilli() ||
		!row.isDriven(seen) || !maps.Equal(row.labels, seen.Labels):
		differs = "the columns and labels that lists use do not match the projection"
	case len(audit.Findings) == 0 && row.bytes != size:
		differs = fmt.Sprintf("the run counts %d bytes, its records and large values have %d", row.bytes, size)
	}
	if differs != "" {
		f := history.Finding{ExecutionID: id, Code: problem.ProjectionDiffers, Message: differs, Hint: hintProject}
		if err := v.fix(&f, func(ctx context.Context, tx pgx.Tx) error { return v.store.foldAnew(ctx, tx, id) }); err != nil {
			return err
		}
	}
	if row.ready && !row.claimable {
		f := history.Finding{ExecutionID: id, Code: problem.RowOrphaned, Hint: hintOrphaned, Message: "the run is ready, but has ended or has an owner"}
		if err := v.fix(&f, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, v.store.texts.of(dropUnclaimable), row.run)
			return err
		}); err != nil {
			return err
		}
	}
	if e.Phase.Terminal() && row.timers > 0 {
		f := history.Finding{ExecutionID: id, Code: problem.RowOrphaned, Hint: hintOrphaned, Message: fmt.Sprintf("the run has ended, but has %d timers", row.timers)}
		return v.fix(&f, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, v.store.texts.of(dropEndedTimers), row.run)
			return err
		})
	}
	return nil
}

// size returns the bytes of the records and of the blobs that they use.
func (row *stored) size(used map[string]bool) (n int64) {
	for i := range row.records {
		n += int64(len(row.records[i].payload))
	}
	for hash := range used {
		n += row.sizes[hash]
	}
	return n
}

// isDriven reports whether the column driven is that of a run; it is 2 only while the run is ready.
func (row *stored) isDriven(e *history.Execution) bool {
	if !e.NeedsDriver() {
		return row.driven == 0
	}
	return row.driven == 1 || row.driven == 2 && row.ready && row.claimable
}

func unreadableRecord(f history.Finding) bool {
	return f.Code == problem.RecordUnreadable || f.Code == problem.HistoryNewer
}

// fix repairs the problem of a finding, if requested, and reports the finding.
func (v *verifier) fix(f *history.Finding, repair func(ctx context.Context, tx pgx.Tx) error) error {
	var err error
	if v.repair {
		err = v.store.transactLong(v.ctx, "the finding was not repaired", true, repair)
		f.Repaired = err == nil
	}
	v.report(*f)
	return err
}

const (
	lockRunNumber = `SELECT run FROM @runs WHERE execution_id = $1::text AND phase <> 'deleted' FOR UPDATE`
	sizeOfBlobs   = `SELECT coalesce(sum(octet_length(content)), 0)::bigint FROM @blobs WHERE run = $1::bigint`
	putProjection = `UPDATE @runs AS r SET seq = $2::bigint, phase = $3::text, definition_name = $4::text, created_at = $5::bigint, updated_at = $6::bigint, listed_at = $7::bigint,
    driven = $8::smallint * CASE WHEN r.owner IS NULL AND EXISTS (SELECT 1 FROM @ready AS q WHERE q.run = r.run) THEN 2 ELSE 1 END, projection = $9::text, bytes = $10::bigint,
    owner = CASE WHEN $11::boolean THEN NULL ELSE r.owner END, disowned = CASE WHEN $11::boolean THEN NULL ELSE r.disowned END,
    position_seq = CASE WHEN $11::boolean THEN 0 ELSE r.position_seq END, position = CASE WHEN $11::boolean THEN NULL ELSE r.position END WHERE r.run = $1::bigint`
	dropLabels = `DELETE FROM @run_labels WHERE run = $1::bigint`
	putLabels  = `INSERT INTO @run_labels (run, name, value) SELECT $1::bigint, x.name, x.value FROM unnest($2::text[], $3::text[]) AS x (name, value)`
)

// foldAnew rebuilds a run's projection from its records and stores it.
func (s *Store) foldAnew(ctx context.Context, tx pgx.Tx, id string) error {
	var run, size int64
	if found, err := first(ctx, tx, s.texts.of(lockRunNumber), []any{key(id)}, &run); err != nil || !found {
		return err // it was deleted meanwhile
	}
	rows, err := s.rowsOf(ctx, tx, id, math.MinInt64, 0)
	if err != nil || len(rows) == 0 {
		return err
	}
	x := newRowReader(id, &shelf{ctx, s, tx, id}, true)
	e := history.Execution{ID: id}
	for i := range rows {
		record, err := x.record(&rows[i])
		if err != nil {
			return err
		}
		e.Apply(record)
		size += int64(len(rows[i].payload))
	}
	var large int64
	if _, err := first(ctx, tx, s.texts.of(sizeOfBlobs), []any{run}, &large); err != nil {
		return err
	}
	driven := int16(0)
	if e.NeedsDriver() {
		driven = 1
	}
	at := e.UpdatedAt.UnixMilli()
	_, err = tx.Exec(ctx, s.texts.of(putProjection), run, e.Seq, string(e.Phase), escaped(e.DefinitionName), e.CreatedAt.UnixMilli(), at, listedAt(at), driven,
		escaped(string(e.AppendText(nil))), size+large, e.Phase.Terminal())
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, s.texts.of(dropLabels), run); err != nil {
		return err
	}
	var names, values []string
	for name, value := range e.Labels {
		names, values = append(names, escaped(name)), append(values, escaped(value))
	}
	if len(names) > 0 {
		if _, err := tx.Exec(ctx, s.texts.of(putLabels), run, names, values); err != nil {
			return err
		}
	}
	if e.Phase.Terminal() {
		for _, text := range []string{dropUnclaimable, dropEndedTimers} {
			if _, err := tx.Exec(ctx, s.texts.of(text), run); err != nil {
				return err
			}
		}
	}
	return nil
}
