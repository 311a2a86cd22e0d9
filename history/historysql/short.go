package historysql

import (
	"context"
	"database/sql/driver"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/shortform"
)

// priorRow implements shortform.Prior with the pool of readers.
type priorRow struct {
	ctx         context.Context
	r           *readers
	executionID string
}

const readShortRow = `SELECT name, payload_json FROM history WHERE execution_id = ?1 AND seq = ?2 AND record_schema_version = ?3`

// ShortState implements shortform.Prior.
func (p *priorRow) ShortState(seq int64) (payload []byte) {
	var name string
	_, err := p.r.row(p.ctx, readShortRow, []any{p.executionID, seq, int64(shortform.Version)}, &name, &payload)
	if err != nil || name != string(history.StateUpdated) {
		return nil
	}
	return payload
}

const (
	markShort  = `UPDATE history SET record_schema_version = ?3 WHERE execution_id = ?1 AND seq = ?2`
	putBlob    = `INSERT INTO blobs (hash, content) VALUES (?1, ?2) ON CONFLICT (hash) DO NOTHING`
	putBlobRef = `INSERT INTO blob_refs (execution_id, blob) SELECT ?1, number FROM blobs WHERE hash = ?2 ON CONFLICT DO NOTHING`
)

// storeShort stores the blobs of the batch and marks its short rows. It returns the size of the new blobs, in bytes.
func storeShort(c *conn, e *shortform.Encoder) (added int64, err error) {
	id := e.Batch.ExecutionID
	for _, b := range e.Blobs() {
		n, err := c.exec(putBlob, b.Hash, b.Content)
		if err != nil {
			return 0, err
		}
		added += n * int64(len(b.Content))
		if _, err := c.exec(putBlobRef, id, b.Hash); err != nil {
			return 0, err
		}
	}
	for _, seq := range e.Rows() {
		if _, err := c.exec(markShort, id, seq, int64(shortform.Version)); err != nil {
			return 0, err
		}
	}
	return added, nil
}

const (
	dropBlobs = `DELETE FROM blobs WHERE number IN (SELECT blob FROM blob_refs WHERE execution_id = ?1 ORDER BY blob LIMIT ?2)
AND NOT EXISTS (SELECT 1 FROM blob_refs WHERE blob = number AND execution_id <> ?1)`
	dropBlobRefs = `DELETE FROM blob_refs WHERE execution_id = ?1 AND blob IN (
    SELECT blob FROM blob_refs WHERE execution_id = ?1 ORDER BY blob LIMIT ?2
)`
)

// dropBlobsOf drops at most limit references of a run under deletion, and deletes the blobs without other references. It returns the number
// of dropped references. The caller repeats it, in any number of transactions, until it returns 0.
func dropBlobsOf(c *conn, executionID string, limit int64) (int64, error) {
	if _, err := c.exec(dropBlobs, executionID, limit); err != nil {
		return 0, err
	}
	return c.exec(dropBlobRefs, executionID, limit)
}

// rowReader reads the rows of one run as records.
type rowReader struct {
	id    string
	short *shortform.Decoder
}

func newRowReader(id string, shelf shortform.Shelf, outline bool) rowReader {
	return rowReader{id, shortform.NewDecoder(id, shelf, outline)}
}

// record returns a row as a record; see storedRow.record.
func (x *rowReader) record(r *storedRow) (history.Record, error) {
	read := func(name history.Name) (history.Payload, error) { return x.short.Payload(name, r.seq, r.payload) }
	if history.RowVersion(r.version) != shortform.Version {
		if r.writer != ownRow || !shortform.HasShortOwn(history.Name(r.name), r.payload) {
			return r.record(x.id)
		}
		read = func(name history.Name) (history.Payload, error) { return x.short.Own(name, r.payload) }
	}
	whole := *r
	whole.version, whole.payload = int64(history.RecordSchemaVersion), emptyObject
	out, err := whole.record(x.id)
	out.Raw = nil
	if err != nil {
		return out, err
	}
	p, err := read(out.Name)
	if err != nil {
		if _, ok := problem.As(err); !ok {
			return out, err // an error of the database
		}
		return out, r.damaged(x.id, "has a large value that cannot be read").WithCause(err)
	}
	out.Payload = p
	return out, nil
}

var emptyObject = []byte("{}")

// shelf implements shortform.Shelf.
type shelf struct{ querier }

const readBlob = `SELECT content FROM blobs WHERE hash = ?1`

// Blob implements shortform.Shelf.
func (s shelf) Blob(hash string) (content string, err error) {
	err = s.query(readBlob, func(row []driver.Value) error {
		content = textOf(row[0])
		return nil
	}, hash)
	return content, err
}

const readStates = `SELECT seq, payload_json FROM history
WHERE execution_id = ?1 AND seq BETWEEN ?2 AND ?3 AND name = 'StateUpdated' AND record_schema_version = ?4 ORDER BY seq`

// States implements shortform.Shelf. It reads all rows before the calls of each, because each may need another connection and the pool is
// small.
func (s shelf) States(executionID string, first, last int64, each func(seq int64, payload []byte) error) error {
	var rows []storedRow
	err := s.query(readStates, func(row []driver.Value) error {
		seq, _ := row[0].(int64)
		rows = append(rows, storedRow{seq: seq, payload: []byte(textOf(row[1]))})
		return nil
	}, executionID, first, last, int64(shortform.Version))
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := each(r.seq, r.payload); err != nil {
			return err
		}
	}
	return nil
}
