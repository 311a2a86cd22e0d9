package historysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math"
	"os"

	"github.com/workflows-engine/workflows-engine/history"
)

// pruneStep is the maximum number of history rows deleted in one transaction, because other writers wait for it. A tree with more rows, or
// with many large values, is first marked as deleted in one transaction, then deleted step by step, each run from its last record back. The
// first record is deleted last, so that no run can begin under its id meanwhile.
const pruneStep = 2000

// markDeleted is the value of the columns phase and problem during a run's deletion.
const markDeleted = "deleted"

const doingPrune = "the runs were not deleted"

const (
	pruneCandidates = `SELECT execution_id, listed_at, run FROM executions
WHERE phase = ?1 AND listed_at <= ?2 AND (listed_at > ?3 OR listed_at = ?3 AND run > ?4)
AND (?5 = '' OR definition_name = ?5)
ORDER BY listed_at, run LIMIT ?6`
	pruneTree = `SELECT execution_id, seq, projection, problem, (SELECT max(seq) FROM history AS h WHERE h.execution_id = e.execution_id)
FROM executions AS e WHERE execution_id = ?1 OR execution_id >= ?2 AND execution_id < ?3
ORDER BY execution_id`
	pruneCountMarked = `SELECT count(*) FROM executions WHERE phase = 'deleted'`
)

// Prune deletes a page of trees of ended runs; see history.Pruner.
func (s *Store) Prune(ctx context.Context, q history.PruneQuery) (history.PrunePage, error) {
	var page history.PrunePage
	if err := q.Check(); err != nil {
		return page, err
	}
	at, err := q.Start()
	if err != nil {
		return page, err
	}
	switch {
	case q.Cursor != "":
	case q.DryRun:
		if _, err := s.readers.row(ctx, pruneCountMarked, nil, &page.Finished); err != nil {
			return page, failure("the runs could not be read", err)
		}
	default:
		if page.Finished, err = s.finishPruning(ctx); err != nil {
			return page, err
		}
	}
	ids, err := s.pruneCandidates(ctx, &q, &at)
	if err != nil {
		return page, failure("the runs could not be read", err)
	}
	page.NextCursor = at.String()
	for _, id := range ids {
		tree, ok, err := s.pruneTree(ctx, id, &q)
		if err != nil {
			return page, err
		}
		if ok {
			page.Trees = append(page.Trees, tree)
		}
	}
	return page, nil
}

// pruneCandidates returns runs that the query may select, and moves the cursor past them.
func (s *Store) pruneCandidates(ctx context.Context, q *history.PruneQuery, at *history.PruneCursor) ([]string, error) {
	return q.Candidates(at, func(phase history.Phase, before int64, at history.PruneCursor, limit int) (page []string, listedAt, run int64, err error) {
		err = s.readers.query(ctx, pruneCandidates, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id, &listedAt, &run)
			page = append(page, id)
			return err
		}, string(phase), before, at.ListedAt, at.Run, q.DefinitionName, limit)
		return page, listedAt, run, err
	})
}

// errNotPrunable rolls the transaction back: the tree is kept.
var errNotPrunable = errors.New("keep")

const pruneWeight = `WITH tree AS (SELECT DISTINCT blob FROM blob_refs WHERE execution_id = ?1 OR execution_id >= ?2 AND execution_id < ?3)
SELECT count(*),
    COALESCE(sum(octet_length(payload_json)), 0) + COALESCE((
        SELECT sum(octet_length(content)) FROM tree JOIN blobs ON number = blob
        WHERE NOT EXISTS (SELECT 1 FROM blob_refs AS r WHERE r.blob = number AND NOT (r.execution_id = ?1 OR r.execution_id >= ?2 AND r.execution_id < ?3))), 0),
    (SELECT count(*) FROM blob_refs WHERE execution_id = ?1 OR execution_id >= ?2 AND execution_id < ?3)
FROM history WHERE execution_id = ?1 OR execution_id >= ?2 AND execution_id < ?3`

// pruneTree deletes one tree if the query selects it. A subworkflow with a stored parent is not a root.
func (s *Store) pruneTree(ctx context.Context, id string, q *history.PruneQuery) (tree history.PrunedTree, ok bool, err error) {
	from, to := history.DescendantRange(id)
	var weighed bool
	var blobs int64
	// Rows never change, so the size can be computed without the lock.
	if weighed, err = s.readers.row(ctx, pruneWeight, []any{id, from, to}, &tree.Records, &tree.Bytes, &blobs); err != nil || !weighed {
		return tree, false, failure(doingPrune, err)
	}
	if q.DryRun {
		_, err := prunable(reader{ctx, &s.readers}, id, q, &tree)
		if errors.Is(err, errNotPrunable) {
			return tree, false, nil
		}
		return tree, err == nil, failure(doingPrune, err)
	}
	stepwise := tree.Records > pruneStep || blobs > pruneBlobs
	var ids []string
	err = s.write(ctx, doingPrune, func(c *conn) (err error) {
		if ids, err = prunable(c, id, q, &tree); err != nil {
			return err
		}
		for _, member := range ids {
			if stepwise {
				err = markRun(c, member)
			} else {
				err = dropRun(c, member)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, errNotPrunable):
		return tree, false, nil
	case err == nil && stepwise:
		_, err = s.finishPruning(ctx)
	}
	return tree, err == nil, err
}

const pendingDelivery = `SELECT 1 FROM deliveries WHERE execution_id = ?1 AND state = 'pending' LIMIT 1`

// prunable returns the ids of a tree's runs, the root first, or errNotPrunable.
func prunable(in querier, id string, q *history.PruneQuery, tree *history.PrunedTree) ([]string, error) {
	for _, above := range history.Ancestors(id) {
		found := false
		err := in.query(rowExists, func([]driver.Value) error { found = true; return nil }, above, int64(1))
		if err != nil {
			return nil, err
		}
		if found {
			return nil, errNotPrunable
		}
	}
	from, to := history.DescendantRange(id)
	var ids []string
	var runs []history.Execution
	err := in.query(pruneTree, func(row []driver.Value) error {
		member, _ := row[0].(string)
		e, err := history.ParseExecution(member, []byte(textOf(row[2])))
		if err != nil || row[3] != nil || row[1] != row[4] {
			return errNotPrunable // the run cannot be read, or is being written to
		}
		ids, runs = append(ids, member), append(runs, e)
		return nil
	}, id, from, to)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 || ids[0] != id || !q.Selects(runs) {
		return nil, errNotPrunable
	}
	waiting := false
	for _, member := range ids {
		if err := in.query(pendingDelivery, func([]driver.Value) error { waiting = true; return nil }, member); err != nil {
			return nil, err
		}
	}
	if waiting { // a notification is pending
		return nil, errNotPrunable
	}
	root := &runs[0]
	tree.ExecutionID, tree.DefinitionName, tree.Phase, tree.UpdatedAt = root.ID, root.DefinitionName, root.Phase, root.UpdatedAt
	tree.Executions = len(ids)
	return ids, nil
}

const pruneMark = `UPDATE executions SET phase = 'deleted', problem = 'deleted', driven = 0, owner = NULL, position_seq = 0, position = NULL WHERE execution_id = ?1`

// markRun marks a run as deleted. finishPruning deletes its rows.
func markRun(c *conn, id string) error {
	if _, err := c.exec(pruneMark, id); err != nil {
		return err
	}
	return dropSideTables(c, id)
}

// pruneBlobs is the maximum number of blob references dropped in one transaction: each blob may take many pages.
const pruneBlobs = 100

const (
	pruneRows     = `DELETE FROM history WHERE execution_id = ?1 AND seq > (SELECT max(seq) FROM history WHERE execution_id = ?1) - ?2`
	dropExecution = `DELETE FROM executions WHERE execution_id = ?1`
)

// dropRun deletes a run.
func dropRun(c *conn, id string) error {
	if _, err := c.exec(pruneRows, id, int64(math.MaxInt32)); err != nil {
		return err
	}
	if _, err := c.exec(dropExecution, id); err != nil {
		return err
	}
	if _, err := dropBlobsOf(c, id, math.MaxInt32); err != nil {
		return err
	}
	return dropSideTables(c, id)
}

const (
	dropTimers           = `DELETE FROM timers WHERE execution_id = ?1`
	dropLease            = `DELETE FROM leases WHERE execution_id = ?1`
	dropDeliveryAttempts = `DELETE FROM delivery_attempts WHERE delivery IN (SELECT number FROM deliveries WHERE execution_id = ?1)`
	dropDeliveries       = `DELETE FROM deliveries WHERE execution_id = ?1`
	dropLinks            = `DELETE FROM run_links WHERE to_id = ?1 OR from_id = ?1`
	dropDeliveryEvents   = `DELETE FROM delivery_events WHERE execution_id = ?1`
)

// dropSideTables deletes the position, timers, deliveries, links, mark and leases of a run. Add further tables that refer to runs here.
func dropSideTables(c *conn, id string) error {
	for _, text := range []string{dropPosition, dropTimers, dropDeliveryAttempts, dropDeliveries, dropDeliveryEvents, dropLinks, dropHandled} {
		if _, err := c.exec(text, id); err != nil {
			return err
		}
	}
	_, err := c.exec(dropLease, id)
	return err
}

const pruneNextMarked = `SELECT execution_id FROM executions WHERE phase = 'deleted' LIMIT 1`

// finishPruning deletes the rows of marked runs step by step, including runs marked by a killed process. It returns the number of completely
// deleted runs.
func (s *Store) finishPruning(ctx context.Context) (finished int, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return finished, failure(doingPrune, err)
		}
		var id string
		if found, err := s.readers.row(ctx, pruneNextMarked, nil, &id); err != nil || !found {
			return finished, failure(doingPrune, err)
		}
		last := 0
		err := s.write(ctx, doingPrune, func(c *conn) error {
			// Another process may have deleted the run, and a new run with this id may have begun.
			marked, err := c.one(readPhase, id)
			if err != nil || textOf(marked) != markDeleted {
				return err
			}
			if n, err := dropBlobsOf(c, id, pruneBlobs); err != nil || n == pruneBlobs {
				return err
			}
			n, err := c.exec(pruneRows, id, int64(pruneStep))
			if err == nil && n < pruneStep {
				last, err = 1, dropRun(c, id)
			}
			return err
		})
		if err != nil {
			return finished, err
		}
		finished += last
	}
}

const (
	definitionHashes = `SELECT json_extract(projection, '$.hash') FROM executions WHERE json_valid(projection)
UNION
SELECT child.value FROM executions, json_each(projection, '$.subworkflows') AS child WHERE json_valid(projection)`
	dropDefinition = `DELETE FROM definitions WHERE hash = ?1`
)

// PruneDefinitions deletes unused definitions; see history.Pruner.
func (s *Store) PruneDefinitions(ctx context.Context, dryRun bool) (out []history.StoredDefinition, err error) {
	const doing = "the definitions were not deleted"
	unneeded := func(in querier) error {
		stored, err := definitions(in)
		if err != nil {
			return err
		}
		hashes, err := column(in, definitionHashes)
		out = history.Unneeded(stored, hashes)
		return err
	}
	if dryRun {
		return out, failure(doing, unneeded(reader{ctx, &s.readers}))
	}
	err = s.write(ctx, doing, func(c *conn) error {
		if err := unneeded(c); err != nil {
			return err
		}
		for i := range out {
			if _, err := c.exec(dropDefinition, out[i].Hash); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

const fileSize = `SELECT (SELECT page_count FROM pragma_page_count), (SELECT freelist_count FROM pragma_freelist_count), (SELECT page_size FROM pragma_page_size)`

// Size returns the size of the file and its WAL, and the free part of it; see history.Shrinker.
func (s *Store) Size(ctx context.Context) (bytes, free int64, err error) {
	var pages, unused, each int64
	if _, err := s.readers.row(ctx, fileSize, nil, &pages, &unused, &each); err != nil {
		return 0, 0, failure("the size could not be read", err)
	}
	bytes, free = pages*each, unused*each
	if wal, err := os.Stat(siblingFile(s.path, walSuffix)); err == nil {
		bytes += wal.Size()
	}
	return bytes, free, nil
}

// Shrink rewrites the file; see history.Shrinker.
func (s *Store) Shrink(ctx context.Context) error {
	const doing = "the database was not shrunk"
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return failure(doing, context.Cause(ctx))
	}
	c, err := s.writing()
	if err != nil {
		return failure(doing, err)
	}
	if err := s.retryBusy(ctx, func() error { return c.script("VACUUM") }); err != nil {
		return failure(doing, err)
	}
	// Copies the pages written by VACUUM from the WAL to the file and empties the WAL. If a reader prevents that, a later
	// writer does it.
	return failure(doing, c.script("PRAGMA wal_checkpoint(TRUNCATE)"))
}

var (
	_ history.Pruner   = (*Store)(nil)
	_ history.Shrinker = (*Store)(nil)
)
