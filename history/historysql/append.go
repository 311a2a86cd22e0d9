package historysql

import (
	"bytes"
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/shortform"
)

// Append adds a batch to one run's history; see history.Store.
//
// It reads nothing first. A duplicate key means that the run is longer than expected: another writer was faster. If the row of executions is
// not at the expected seq, a query finds out whether the run is shorter.
func (s *Store) Append(ctx context.Context, b history.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	a := appends.Get().(*appending)
	defer a.giveBack()
	a.encode(ctx, s, b)
	err := s.sharePending("the records were not appended",
		&pending{ctx: ctx, change: a.change, stored: a.stored, size: len(a.text.all) + a.short.BlobBytes() + deliveryBytes(&b)})
	if err == nil && b.Bytes != nil {
		*b.Bytes = b.Execution.Bytes + a.added
	}
	return err
}

// appending is a call of Append. Values are pooled, because a process makes thousands of calls a second.
type appending struct {
	store *Store
	batch history.Batch
	text  batchText
	short shortform.Encoder
	prior priorRow
	// added is the number of bytes added to the run.
	added int64
}

var appends = sync.Pool{New: func() any { return new(appending) }}

func (a *appending) giveBack() {
	text, small := a.text.emptied()
	if *a = (appending{text: text}); small {
		appends.Put(a)
	}
}

// encode writes the texts of the batch.
func (a *appending) encode(ctx context.Context, s *Store, b history.Batch) {
	a.store, a.batch = s, b
	a.prior = priorRow{ctx, &s.readers, b.ExecutionID}
	a.short = shortform.Encoder{Batch: &a.batch, WholeBytes: s.options.WholeBytes, ValueBytes: s.options.ValueBytes, Prior: &a.prior}
	a.text.write(&a.short)
}

// change makes the append in a transaction.
func (a *appending) change(c *conn) error {
	s, b, t := a.store, &a.batch, &a.text
	if err := insertBatch(c, b, t); err != nil {
		return err
	}
	blobs, err := storeShort(c, &a.short)
	if err != nil {
		return err
	}
	a.added = int64(len(t.all)) + blobs
	fenced, err := storeProjection(c, b, t, a.added)
	if err == nil && !fenced {
		err = s.storeOwner(c, b)
	}
	if err == nil && b.Ready != nil {
		err = s.makeReady(c, b.ExecutionID, b.Ready)
	}
	if err != nil {
		return err
	}
	return s.storeSideTables(c, b)
}

const batchStored = `SELECT 1 FROM history WHERE execution_id = ?1 AND seq = ?2 AND payload_json = ?3 AND created_at = ?4`

// stored reports whether the newest record of the batch is stored.
func (a *appending) stored(c *conn) (bool, error) {
	n := len(a.batch.Records)
	if n == 0 {
		return false, nil
	}
	found, err := c.one(batchStored, a.batch.ExecutionID, a.batch.ExpectedSeq+int64(n), a.text.payload(n-1),
		history.FormatTimestamp(a.batch.Records[n-1].CreatedAt))
	return found != nil, err
}

// batchText holds the stored payloads of a batch in one buffer.
type batchText struct {
	buffer []byte
	ends   []int // of each payload
	args   []driver.NamedValue
	all    string
}

// maxPooledText is the largest buffer, in bytes, that returns to the pool.
const maxPooledText = 1 << 20

// emptied returns the buffers for reuse, and whether they are small enough for the pool.
func (t *batchText) emptied() (again batchText, small bool) {
	return batchText{buffer: t.buffer[:0], ends: t.ends[:0], args: t.args[:0]}, cap(t.buffer) <= maxPooledText
}

func (t *batchText) write(e *shortform.Encoder) {
	t.buffer, t.ends = t.buffer[:0], t.ends[:0]
	for i := range e.Batch.Records {
		t.buffer = e.Append(t.buffer, i)
		t.ends = append(t.ends, len(t.buffer))
	}
	t.all = string(t.buffer)
}

func (t *batchText) payload(i int) string {
	start := 0
	if i > 0 {
		start = t.ends[i-1]
	}
	return t.all[start:t.ends[i]]
}

// storeProjection stores the projection if the run's last record is the expected one. fenced reports whether the batch's owner owns the run
// before and after the batch.
func storeProjection(c *conn, b *history.Batch, t *batchText, added int64) (fenced bool, err error) {
	e := b.Execution
	e.Bytes += added
	positionSeq, position := positionOf(b)
	starts := func(r history.Record) bool { return r.Name == history.ExecutionStarted }
	if b.ExpectedSeq == 0 || slices.ContainsFunc(b.Records, starts) {
		if err := expectHead(c, b); err != nil {
			return false, err
		}
		return false, storeExecution(c, &e, "", positionSeq, position)
	}
	var owner any
	if b.Owner != "" && !b.Disown && !e.Phase.Terminal() {
		owner = b.Owner
	}
	if moved, err := moveRow(c, t, &e, b.ExpectedSeq, owner, added, positionSeq, position); err != nil || moved {
		return owner != nil, err
	}
	// The row is missing or behind, or the run is not at the expected seq, or it has another owner.
	if err := expectHead(c, b); err != nil {
		return false, err
	}
	return false, storeExecution(c, &e, "", positionSeq, position)
}

const (
	advanceExecution = `UPDATE executions SET seq = ?3, updated_at = ?6, projection = ?8, bytes = bytes + ?11,
    position_seq = COALESCE(?9, position_seq), position = CASE WHEN ?9 IS NULL THEN position ELSE ?10 END
WHERE execution_id = ?1 AND seq = ?2 AND phase = ?4 AND listed_at = ?5 AND driven = ?7 AND (?12 IS NULL OR +owner = ?12)`
	moveExecution = `UPDATE executions SET seq = ?3, phase = ?4, listed_at = ?5, updated_at = ?6, projection = ?8, bytes = bytes + ?11,
    position_seq = COALESCE(?9, position_seq), position = CASE WHEN ?9 IS NULL THEN position ELSE ?10 END
WHERE execution_id = ?1 AND seq = ?2 AND driven = ?7 AND (?12 IS NULL OR +owner = ?12)`
	setDriven = `UPDATE executions SET driven = ?3 WHERE execution_id = ?1 AND seq = ?2`
)

// moveRow updates the row of executions if it is at the given seq and the run has the given owner; nil means any owner.
func moveRow(c *conn, t *batchText, e *history.Execution, from int64, owner any, added int64, positionSeq, position any) (moved bool, err error) {
	updated, driven := e.UpdatedAt.UnixMilli(), flag(e.NeedsDriver())
	args := named(t.args[:0], e.ID, from, e.Seq, string(e.Phase), listedAt(updated), updated, driven,
		string(e.AppendText(nil)), positionSeq, position, added, owner)
	defer clear(args)
	t.args = args
	// Most batches need only the first statement. It changes no column of an index.
	for _, text := range []string{advanceExecution, moveExecution} {
		if n, err := c.run(text, args); n > 0 || err != nil {
			return n > 0, err
		}
	}
	if n, err := c.exec(setDriven, e.ID, from, driven); n == 0 || err != nil {
		return false, err
	}
	n, err := c.run(moveExecution, args)
	return n > 0, err
}

// tenth is the precision of the list indexes in milliseconds.
const tenth = 100

// listedAt rounds a time in milliseconds down to a tenth of a second, the precision of the list indexes. Runs within a tenth are sorted when
// a page is read.
func listedAt(updated int64) int64 {
	return updated - (updated%tenth+tenth)%tenth
}

const rowExists = `SELECT 1 FROM history WHERE execution_id = ?1 AND seq = ?2`

// expectHead checks that the record before the batch exists. A later record would have caused a duplicate key.
func expectHead(c *conn, b *history.Batch) error {
	if b.ExpectedSeq == 0 {
		return nil
	}
	found, err := c.one(rowExists, b.ExecutionID, b.ExpectedSeq)
	if err == nil && found == nil {
		return b.Conflict()
	}
	return err
}

// maxRowPosition is the largest position, in bytes, stored in the run's row of executions, which each append writes.
const maxRowPosition = 2048

// positionOf returns the position of a batch to store in the run's row, and its seq. A nil seq keeps the stored position.
func positionOf(b *history.Batch) (seq, position any) {
	switch ended := b.Execution.Phase.Terminal(); {
	case ended, b.Position == nil && b.ExpectedSeq == 0:
		return int64(0), nil
	case b.Position == nil:
		return nil, nil
	case len(b.Position) > maxRowPosition:
		return b.Execution.Seq, nil
	}
	return b.Execution.Seq, b.Position
}

const (
	putPosition = `INSERT INTO positions (execution_id, position) VALUES (?1, ?2)
ON CONFLICT (execution_id) DO UPDATE SET position = excluded.position`
	dropPosition = `DELETE FROM positions WHERE execution_id = ?1`
)

// storePosition stores a position that is too large for the run's row, and deletes a large position that the batch replaces.
func storePosition(c *conn, b *history.Batch) (err error) {
	switch ended := b.Execution.Phase.Terminal(); {
	case len(b.Position) > maxRowPosition && !ended:
		_, err = c.exec(putPosition, b.ExecutionID, b.Position)
	case b.Position != nil || ended:
		_, err = c.exec(dropPosition, b.ExecutionID)
	}
	return err
}

const putExecution = `INSERT INTO executions (execution_id, seq, phase, definition_name, created_at, updated_at, listed_at, driven, projection, problem, position_seq, position, bytes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, COALESCE(?11, 0), ?12, ?13)
ON CONFLICT (execution_id) DO UPDATE SET
    seq = excluded.seq, phase = excluded.phase, definition_name = excluded.definition_name, created_at = excluded.created_at,
    updated_at = excluded.updated_at, listed_at = excluded.listed_at, driven = excluded.driven, projection = excluded.projection,
    problem = excluded.problem, bytes = excluded.bytes, position_seq = COALESCE(?11, position_seq), position = CASE WHEN ?11 IS NULL THEN position ELSE ?12 END
WHERE executions.problem IS NOT 'deleted'`

// storeExecution stores a projection unconditionally. unreadable is the reason why the run cannot be read, or empty.
func storeExecution(c *conn, e *history.Execution, unreadable string, positionSeq, position any) error {
	var problem any
	if unreadable != "" {
		problem = unreadable
	}
	updated := e.UpdatedAt.UnixMilli()
	n, err := c.exec(putExecution, e.ID, e.Seq, string(e.Phase), e.DefinitionName, e.CreatedAt.UnixMilli(), updated, listedAt(updated),
		flag(e.NeedsDriver()), string(e.AppendText(nil)), problem, positionSeq, position, e.Bytes)
	if err == nil && n == 0 { // the run is being deleted
		return history.BeingDeleted(e.ID)
	}
	return err
}

// storeSideTables stores the definition, a large position, the deliveries and the timers of the batch.
func (s *Store) storeSideTables(c *conn, b *history.Batch) error {
	for d := range b.Definitions() {
		if err := s.insertDefinition(c, d); err != nil {
			return err
		}
	}
	if err := storePosition(c, b); err != nil {
		return err
	}
	if err := storeDeliveries(c, b); err != nil {
		return err
	}
	if err := storeLink(c, b); err != nil {
		return err
	}
	if err := handleRetried(c, b); err != nil {
		return err
	}
	return storeTimers(c, b)
}

func flag(v bool) int64 {
	if v {
		return 1
	}
	return 0
}

const (
	putDefinition = `INSERT INTO definitions (hash, name, version, text, signature, stored_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (hash) DO UPDATE SET signature = excluded.signature WHERE excluded.signature NOT IN ('', signature)`
	readSignatures = `SELECT signature FROM definitions WHERE hash = ?1`
)

func (s *Store) insertDefinition(c *conn, d *history.StoredDefinition) error {
	signatures := d.Signatures
	if len(signatures) > 0 {
		stored, err := c.one(readSignatures, d.Hash)
		if err != nil {
			return err
		}
		signatures = history.AddSignatures(signaturesOf(textOf(stored)), signatures)
	}
	_, err := c.exec(putDefinition, d.Hash, d.Name, d.Version, string(d.Text), string(bytes.Join(signatures, []byte("\n"))), s.clock.Now().UnixMilli())
	return err
}

const (
	// maxInsertRows is the number of rows inserted by one statement; a longer batch takes several.
	maxInsertRows = 32
	// A batch of at most maxShapeRows records with one time gets its own statement, up to maxShapes of them per connection. Runs repeat a
	// handful of shapes.
	maxShapeRows = 12
	maxShapes    = 64
)

// insertBatch inserts the records. After an error the caller must roll back: OR FAIL keeps the rows before the failure, because it spares
// SQLite a copy of every page that it changes.
func insertBatch(c *conn, b *history.Batch, t *batchText) error {
	if len(b.Records) == 0 { // no key can be a duplicate
		if found, err := c.one(rowExists, b.ExecutionID, b.ExpectedSeq+1); err != nil || found != nil {
			return cmp.Or(err, b.Conflict())
		}
	}
	for first := 0; first < len(b.Records); {
		n := min(len(b.Records)-first, maxInsertRows)
		records := b.Records[first : first+n]
		at := history.FormatTimestamp(records[0].CreatedAt)
		args := named(t.args[:0], b.ExecutionID, b.ExpectedSeq+1+int64(first), at)
		text, shaped := c.shapeOf(records)
		if !shaped {
			text = insertStatements()[n]
		}
		for i := range records {
			if !shaped {
				if i > 0 && !records[i].CreatedAt.Equal(records[i-1].CreatedAt) {
					at = history.FormatTimestamp(records[i].CreatedAt)
				}
				args = named(args, at, string(records[i].Kind), string(records[i].Name))
			}
			args = named(args, t.payload(first+i))
		}
		_, err := c.run(text, args)
		clear(args)
		t.args = args
		if isDuplicate(err) {
			return b.Conflict()
		}
		if err != nil {
			return err
		}
		first += n
	}
	return nil
}

// insertStatements holds the generic insert statement for each number of rows.
var insertStatements = sync.OnceValue(func() (texts [maxInsertRows + 1]string) {
	for n := 1; n <= maxInsertRows; n++ {
		texts[n] = insertStatement(n, func(i int) (at, kind, name, payload string) {
			parameter := func(k int) string { return fmt.Sprintf("?%d", 4+4*i+k) } // after id, first seq and time
			return parameter(0), parameter(1), parameter(2), parameter(3)
		})
	}
	return texts
})

const insertRows = `INSERT OR FAIL INTO history (execution_id, seq, created_at, kind, name, payload_json, record_schema_version, writer) VALUES`

func insertStatement(n int, values func(i int) (at, kind, name, payload string)) string {
	rows := make([]string, n)
	for i := range rows {
		at, kind, name, payload := values(i)
		rows[i] = fmt.Sprintf("(?1, ?2 + %d, %s, %s, %s, %s, 1, 1)", i, at, kind, name, payload)
	}
	return insertRows + " " + strings.Join(rows, ",")
}

// shapeOf returns a statement that contains the kinds and names of the records and binds one time, so that only one of three values is bound.
// Names come from a closed list; see history.Batch.Check.
func (c *conn) shapeOf(records []history.Record) (text string, ok bool) {
	if len(records) == 0 || len(records) > maxShapeRows {
		return "", false
	}
	key := c.shapeKey[:0]
	for i := range records {
		if !records[i].CreatedAt.Equal(records[0].CreatedAt) {
			return "", false
		}
		key = append(append(key, records[i].Name...), ' ')
	}
	c.shapeKey = key
	if text, ok := c.shapes[string(key)]; ok {
		return text, true
	}
	if len(c.shapes) >= maxShapes {
		return "", false
	}
	// Payloads are bound without numbers: the driver looks numbered parameters up by name.
	text = insertStatement(len(records), func(i int) (at, kind, name, payload string) {
		return "?3", "'" + string(records[i].Kind) + "'", "'" + string(records[i].Name) + "'", "?"
	})
	c.shapes[string(key)] = text
	return text, true
}
