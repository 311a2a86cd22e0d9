package historypg

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/workflows-engine/workflows-engine/history"
)

// pruneStep is the maximum number of records and blobs deleted in one transaction. A tree with more is first marked as deleted in one transaction,
// then deleted step by step, each run's own row last, so that no run can begin under its id meanwhile.
const pruneStep = 10_000

const doingPrune = "the runs were not deleted"

var _ history.Pruner = (*Store)(nil)

const (
	pruneCandidates = `SELECT execution_id, listed_at, run FROM @runs
WHERE phase = $1::text AND listed_at <= $2::bigint AND (listed_at > $3::bigint OR listed_at = $3::bigint AND run > $4::bigint)
AND ($5::text = '' OR definition_name = $5::text) ORDER BY listed_at, run LIMIT $6::bigint`
	pruneTree = `SELECT run, execution_id, phase, projection FROM @runs
WHERE execution_id = $1::text OR execution_id >= $2::text AND execution_id < $3::text ORDER BY execution_id`
	pruneCountMarked = `SELECT count(*) FROM @runs WHERE phase = 'deleted'`
)

// Prune deletes a page of trees of ended runs; see history.Pruner.
func (s *Store) Prune(ctx context.Context, q history.PruneQuery) (page history.PrunePage, err error) {
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
		var n int64
		if err := s.read(ctx, doingPrune, func(in queries) error {
			_, err := first(ctx, in, s.texts.of(pruneCountMarked), nil, &n)
			return err
		}); err != nil {
			return page, err
		}
		page.Finished = int(n)
	default:
		if page.Finished, err = s.finishPruning(ctx); err != nil {
			return page, err
		}
	}
	ids, err := s.pruneCandidates(ctx, &q, &at)
	if err != nil {
		return page, err
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
		err = s.read(ctx, doingPrune, func(in queries) error {
			page = nil
			return each(ctx, in, s.texts.of(pruneCandidates), func(row pgx.Rows) error {
				var id string
				err := row.Scan(&id, &listedAt, &run)
				page = append(page, unescaped(id))
				return err
			}, string(phase), before, at.ListedAt, at.Run, key(q.DefinitionName), int64(limit))
		})
		return page, listedAt, run, err
	})
}

// errNotPrunable rolls the transaction back: the tree is kept.
var errNotPrunable = errors.New("keep")

const (
	// The table is locked first, as everywhere: see lockLinks.
	useLinks    = `LOCK TABLE @run_links IN ROW EXCLUSIVE MODE`
	pruneWeight = `WITH tree AS (SELECT run FROM @runs WHERE execution_id = $1::text OR execution_id >= $2::text AND execution_id < $3::text),
rows AS (SELECT count(*) AS n, coalesce(sum(octet_length(payload)), 0) AS size FROM @records JOIN tree USING (run)),
large AS (SELECT count(*) AS n, coalesce(sum(octet_length(content)), 0) AS size FROM @blobs JOIN tree USING (run))
SELECT rows.n, (rows.size + large.size)::bigint, large.n FROM rows, large`
)

// pruneTree deletes one tree if the query selects it. A subworkflow with a stored parent is not a root.
func (s *Store) pruneTree(ctx context.Context, id string, q *history.PruneQuery) (tree history.PrunedTree, ok bool, err error) {
	from, to := history.DescendantRange(key(id))
	var blobs int64
	err = s.read(ctx, doingPrune, func(in queries) error { // records never change, so they can be weighed without a lock
		_, err := first(ctx, in, s.texts.of(pruneWeight), []any{key(id), from, to}, &tree.Records, &tree.Bytes, &blobs)
		return err
	})
	if err != nil {
		return tree, false, err
	}
	if q.DryRun {
		err := s.snapshot(ctx, doingPrune, func(in queries) error {
			_, _, err := s.prunable(ctx, in, pruneTree, id, q, &tree)
			if errors.Is(err, errNotPrunable) {
				ok = false
				return nil
			}
			ok = err == nil
			return err
		})
		return tree, ok, err
	}
	stepwise := tree.Records+blobs > pruneStep
	err = s.transactLong(ctx, doingPrune, false, func(ctx context.Context, tx pgx.Tx) error {
		ok = false
		if _, err := tx.Exec(ctx, s.texts.of(useLinks)); err != nil {
			return err
		}
		runs, ids, err := s.prunable(ctx, tx, pruneTree+" FOR UPDATE", id, q, &tree)
		switch {
		case errors.Is(err, errNotPrunable):
			return nil
		case err != nil:
			return err
		case stepwise:
			err = s.execAll(ctx, tx, runs, ids, append([]string{pruneMark}, dropSideTables...))
		default:
			err = s.execAll(ctx, tx, runs, ids, slices.Concat(dropRows, dropSideTables, []string{dropRuns}))
		}
		ok = err == nil
		return err
	})
	if err == nil && ok && stepwise {
		_, err = s.finishPruning(ctx)
	}
	return tree, ok && err == nil, err
}

const (
	anyRun          = `SELECT 1 FROM @runs WHERE execution_id = ANY ($1::text[]) LIMIT 1`
	pendingDelivery = `SELECT 1 FROM @deliveries WHERE run = ANY ($1::bigint[]) AND state = 'pending' LIMIT 1`
)

// prunable returns the numbers and ids of a tree's runs, the root first, or errNotPrunable. text is pruneTree.
func (s *Store) prunable(ctx context.Context, q queries, text, id string, query *history.PruneQuery, tree *history.PrunedTree) (runs []int64, ids []string, err error) {
	if above := history.Ancestors(id); len(above) > 0 {
		found, err := first(ctx, q, s.texts.of(anyRun), []any{keys(above)}, new(int32))
		if err != nil {
			return nil, nil, err
		}
		if found {
			return nil, nil, errNotPrunable
		}
	}
	from, to := history.DescendantRange(key(id))
	var members []history.Execution
	unreadable := false
	err = each(ctx, q, s.texts.of(text), func(row pgx.Rows) error {
		var run int64
		var member, phase, projection string
		if err := row.Scan(&run, &member, &phase, &projection); err != nil {
			return err
		}
		e, err := parseExecution(unescaped(member), projection, 0)
		unreadable = unreadable || err != nil || phase == deleted
		runs, ids, members = append(runs, run), append(ids, member), append(members, e)
		return nil
	}, key(id), from, to)
	switch {
	case err != nil:
		return nil, nil, err
	case unreadable, len(ids) == 0, members[0].ID != id, !query.Selects(members):
		return nil, nil, errNotPrunable
	}
	pending, err := first(ctx, q, s.texts.of(pendingDelivery), []any{runs}, new(int32))
	if err != nil {
		return nil, nil, err
	}
	if pending { // a notification is pending
		return nil, nil, errNotPrunable
	}
	root := &members[0]
	tree.ExecutionID, tree.DefinitionName, tree.Phase, tree.UpdatedAt = root.ID, root.DefinitionName, root.Phase, root.UpdatedAt
	tree.Executions = len(ids)
	return runs, ids, nil
}

const (
	pruneMark = `UPDATE @runs SET phase = 'deleted', driven = 0, owner = NULL, disowned = NULL, position_seq = 0, position = NULL WHERE run = ANY ($1::bigint[]) AND $2::text[] IS NOT NULL`
	dropRuns  = `DELETE FROM @runs WHERE run = ANY ($1::bigint[]) AND $2::text[] IS NOT NULL`
)

// dropRows delete the records and blobs of runs, dropSideTables everything else but their own rows. Add further tables that refer to runs here.
var (
	dropRows = []string{
		`DELETE FROM @records WHERE run = ANY ($1::bigint[]) AND $2::text[] IS NOT NULL`,
		`DELETE FROM @blobs WHERE run = ANY ($1::bigint[]) AND $2::text[] IS NOT NULL`,
	}
	dropSideTables = []string{
		`DELETE FROM @timers WHERE run = ANY ($1::bigint[]) AND $2::text[] IS NOT NULL`,
		`DELETE FROM @run_labels WHERE run = ANY ($1::bigint[]) AND $2::text[] IS NOT NULL`,
		`DELETE FROM @ready WHERE run = ANY ($1::bigint[]) AND $2::text[] IS NOT NULL`,
		`DELETE FROM @delivery_attempts WHERE delivery IN (SELECT number FROM @deliveries WHERE run = ANY ($1::bigint[])) AND $2::text[] IS NOT NULL`,
		`DELETE FROM @deliveries WHERE run = ANY ($1::bigint[]) AND $2::text[] IS NOT NULL`,
		`DELETE FROM @delivery_events WHERE run = ANY ($1::bigint[]) AND $2::text[] IS NOT NULL`,
		`DELETE FROM @run_links WHERE (to_id = ANY ($2::text[]) OR from_id = ANY ($2::text[])) AND $1::bigint[] IS NOT NULL`,
		`DELETE FROM @handled WHERE execution_id = ANY ($2::text[]) AND $1::bigint[] IS NOT NULL`,
	}
)

// execAll makes statements whose parameters are the numbers and the stored ids of runs.
func (s *Store) execAll(ctx context.Context, tx pgx.Tx, runs []int64, ids []string, statements []string) error {
	var batch pgx.Batch
	for _, text := range statements {
		batch.Queue(s.texts.of(text), runs, ids)
	}
	return tx.SendBatch(ctx, &batch).Close()
}

const (
	pruneNextMarked = `SELECT run, execution_id FROM @runs WHERE phase = 'deleted' ORDER BY listed_at LIMIT 1 FOR UPDATE SKIP LOCKED`
	pruneRecords    = `DELETE FROM @records WHERE run = $1::bigint AND seq IN (SELECT seq FROM @records WHERE run = $1::bigint ORDER BY seq DESC LIMIT $2::bigint)`
	pruneBlobs      = `DELETE FROM @blobs WHERE run = $1::bigint AND hash IN (SELECT hash FROM @blobs WHERE run = $1::bigint LIMIT $2::bigint)`
)

// finishPruning deletes the rows of marked runs step by step, including runs marked by a killed process. It returns the number of completely
// deleted runs.
func (s *Store) finishPruning(ctx context.Context) (finished int, err error) {
	for {
		found, last := false, 0
		err := s.transactLong(ctx, doingPrune, true, func(ctx context.Context, tx pgx.Tx) error {
			last = 0
			if _, err := tx.Exec(ctx, s.texts.of(useLinks)); err != nil {
				return err
			}
			var run int64
			var id string
			var err error
			if found, err = first(ctx, tx, s.texts.of(pruneNextMarked), nil, &run, &id); err != nil || !found {
				return err
			}
			for _, text := range []string{pruneRecords, pruneBlobs} {
				tag, err := tx.Exec(ctx, s.texts.of(text), run, int64(pruneStep))
				if err != nil || tag.RowsAffected() == pruneStep {
					return err
				}
			}
			last = 1
			return s.execAll(ctx, tx, []int64{run}, []string{id}, append(slices.Clone(dropSideTables), dropRuns))
		})
		if err != nil || !found {
			return finished, err
		}
		finished += last
	}
}

const (
	// lockDefinitions lets no run begin while definitions are deleted: each start adds its definition, which waits for this lock.
	lockDefinitions = `LOCK TABLE @definitions IN SHARE ROW EXCLUSIVE MODE`
	// A text with U+0000 cannot be read by the server.
	definitionHashes = `SELECT projection::json ->> 'hash' FROM @runs WHERE phase <> 'deleted' AND strpos(projection, '\u0000') = 0 AND projection::json ->> 'hash' IS NOT NULL
UNION SELECT c.value FROM @runs AS r, json_each_text(r.projection::json -> 'subworkflows') AS c WHERE r.phase <> 'deleted' AND strpos(r.projection, '\u0000') = 0 AND c.value IS NOT NULL`
	otherProjections = `SELECT execution_id, projection FROM @runs WHERE phase <> 'deleted' AND strpos(projection, '\u0000') > 0`
	dropDefinitions  = `DELETE FROM @definitions WHERE hash = ANY ($1::text[])`
)

// PruneDefinitions deletes unused definitions; see history.Pruner.
func (s *Store) PruneDefinitions(ctx context.Context, dryRun bool) (out []history.StoredDefinition, err error) {
	const doing = "the definitions were not deleted"
	if dryRun {
		err := s.snapshot(ctx, doing, func(q queries) (err error) {
			out, err = s.unneeded(ctx, q)
			return err
		})
		return out, err
	}
	err = s.transactLong(ctx, doing, true, func(ctx context.Context, tx pgx.Tx) (err error) {
		if _, err := tx.Exec(ctx, s.texts.of(lockDefinitions)); err != nil {
			return err
		}
		if out, err = s.unneeded(ctx, tx); err != nil || len(out) == 0 {
			return err
		}
		var hashes []string
		for i := range out {
			hashes = append(hashes, escaped(out[i].Hash))
		}
		_, err = tx.Exec(ctx, s.texts.of(dropDefinitions), hashes)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// unneeded returns the definitions that no run needs.
func (s *Store) unneeded(ctx context.Context, q queries) ([]history.StoredDefinition, error) {
	var stored []history.StoredDefinition
	err := each(ctx, q, s.texts.of(allDefinitions), func(row pgx.Rows) error {
		d, err := scanDefinition(row)
		stored = append(stored, d)
		return err
	})
	if err != nil {
		return nil, err
	}
	hashes, err := column(ctx, q, s.texts.of(definitionHashes))
	if err != nil {
		return nil, err
	}
	err = each(ctx, q, s.texts.of(otherProjections), func(row pgx.Rows) error {
		var id, projection string
		if err := row.Scan(&id, &projection); err != nil {
			return err
		}
		e, err := parseExecution(unescaped(id), projection, 0)
		hashes = append(hashes, e.DefinitionHash)
		for _, hash := range e.Subworkflows {
			hashes = append(hashes, hash)
		}
		return err
	})
	return history.Unneeded(stored, hashes), err
}
