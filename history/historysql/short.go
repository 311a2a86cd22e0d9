package historysql

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/shortform"
)

// encoder returns the encoder of a batch's payloads.
func (s *Store) encoder(b *history.Batch, prior shortform.Prior) shortform.Encoder {
	return shortform.Encoder{Batch: b, WholeBytes: s.options.WholeBytes, ValueBytes: s.options.ValueBytes, Prior: prior}
}

// priorRow implements shortform.Prior through the pool of readers.
type priorRow struct {
	ctx         context.Context
	r           *readers
	executionID string
}

// ShortState implements shortform.Prior.
func (p *priorRow) ShortState(seq int64) (payload []byte) {
	var name string
	_, err := p.r.row(p.ctx, readShortRow, []any{p.executionID, seq, int64(shortform.Version)}, &name, &payload)
	if err != nil || name != string(history.StateUpdated) {
		return nil
	}
	return payload
}

// storeShort stores the blobs of the batch and marks its short rows. It returns the size of the blobs that were new.
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

// dropBlobsOf drops at most limit references of a run that is being deleted, and deletes the blobs that no other run
// refers to. It returns the number of references dropped. The caller repeats it, in as many transactions as it likes,
// until that is 0.
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
	if history.RowVersion(r.version) != shortform.Version {
		return r.record(x.id)
	}
	whole := *r
	whole.version, whole.payload = int64(history.RecordSchemaVersion), emptyObject
	out, err := whole.record(x.id)
	out.Raw = nil
	if err != nil {
		return out, err
	}
	p, err := x.short.Payload(out.Name, r.seq, r.payload)
	if err != nil {
		if _, ok := problem.As(err); !ok {
			return out, err // the database's
		}
		return out, r.damaged(x.id, "has a large value that cannot be read").WithCause(err)
	}
	out.Payload = p
	return out, nil
}

var emptyObject = []byte("{}")

// readerShelf implements shortform.Shelf through the pool of readers.
type readerShelf struct {
	ctx context.Context
	r   *readers
}

// Blob implements shortform.Shelf.
func (s readerShelf) Blob(hash string) (string, error) {
	var content string
	_, err := s.r.row(s.ctx, readBlob, []any{hash}, &content)
	return content, err
}

// States implements shortform.Shelf. It reads all rows first, because each may need a connection of its own and the pool
// is small.
func (s readerShelf) States(executionID string, first, last int64, each func(seq int64, payload []byte) error) error {
	var rows stateRows
	err := s.r.query(s.ctx, readStates, func(found *sql.Rows) error {
		var r stateRow
		err := found.Scan(&r.seq, &r.payload)
		rows = append(rows, r)
		return err
	}, executionID, first, last, int64(shortform.Version))
	if err != nil {
		return err
	}
	return rows.each(each)
}

// connShelf implements shortform.Shelf within a transaction.
type connShelf struct{ c *conn }

// Blob implements shortform.Shelf.
func (s connShelf) Blob(hash string) (string, error) {
	v, err := s.c.one(readBlob, hash)
	content, _ := v.(string)
	return content, err
}

// States implements shortform.Shelf.
func (s connShelf) States(executionID string, first, last int64, each func(seq int64, payload []byte) error) error {
	var rows stateRows
	err := s.c.query(readStates, func(values []driver.Value) error {
		seq, _ := values[0].(int64)
		rows = append(rows, stateRow{seq, []byte(textOf(values[1]))})
		return nil
	}, executionID, first, last, int64(shortform.Version))
	if err != nil {
		return err
	}
	return rows.each(each)
}

type stateRow struct {
	seq     int64
	payload []byte
}

type stateRows []stateRow

func (rows stateRows) each(call func(seq int64, payload []byte) error) error {
	for _, r := range rows {
		if err := call(r.seq, r.payload); err != nil {
			return err
		}
	}
	return nil
}
