package historypg

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/shortform"
)

// priorRow implements shortform.Prior. It reads before the append and without a lock: rows never change.
type priorRow struct {
	ctx         context.Context
	store       *Store
	executionID string
}

const readShortRow = `SELECT e.name, e.payload FROM @records AS e JOIN @runs AS r USING (run) WHERE r.execution_id = $1::text AND e.seq = $2::bigint AND e.form = 1`

// ShortState implements shortform.Prior.
func (p *priorRow) ShortState(seq int64) []byte {
	var name, payload string
	found := false
	err := p.store.read(p.ctx, doingAppend, func(q queries) (err error) {
		found, err = first(p.ctx, q, p.store.texts.of(readShortRow), []any{key(p.executionID), seq}, &name, &payload)
		return err
	})
	if err != nil || !found || name != string(history.StateUpdated) {
		return nil
	}
	return []byte(unescaped(payload))
}

// shelf implements shortform.Shelf for one run.
type shelf struct {
	ctx         context.Context
	store       *Store
	q           queries
	executionID string
}

const readBlob = `SELECT b.content FROM @blobs AS b JOIN @runs AS r USING (run) WHERE r.execution_id = $1::text AND b.hash = $2::text`

// Blob implements shortform.Shelf.
func (s *shelf) Blob(hash string) (content string, err error) {
	_, err = first(s.ctx, s.q, s.store.texts.of(readBlob), []any{key(s.executionID), hash}, &content)
	return unescaped(content), err
}

const readStates = `SELECT e.seq, e.payload FROM @records AS e JOIN @runs AS r USING (run)
WHERE r.execution_id = $1::text AND e.seq BETWEEN $2::bigint AND $3::bigint AND e.name = 'StateUpdated' AND e.form = 1 ORDER BY e.seq`

// States implements shortform.Shelf. It reads all rows before the calls of each, which may need the connection.
func (s *shelf) States(executionID string, firstSeq, lastSeq int64, f func(seq int64, payload []byte) error) error {
	var rows []storedRow
	err := each(s.ctx, s.q, s.store.texts.of(readStates), func(row pgx.Rows) error {
		var r storedRow
		var payload string
		err := row.Scan(&r.seq, &payload)
		r.payload = []byte(unescaped(payload))
		rows = append(rows, r)
		return err
	}, key(executionID), firstSeq, lastSeq)
	if err != nil {
		return err
	}
	for i := range rows {
		if err := f(rows[i].seq, rows[i].payload); err != nil {
			return err
		}
	}
	return nil
}

// rowReader reads the rows of one run as records.
type rowReader struct {
	id    string
	short *shortform.Decoder
}

func newRowReader(id string, from shortform.Shelf, outline bool) rowReader {
	return rowReader{id, shortform.NewDecoder(id, from, outline)}
}

// record returns a row as a record. With an error, the record holds the readable part.
func (x *rowReader) record(r *storedRow) (history.Record, error) {
	name := history.Name(r.name)
	out := history.Record{Seq: r.seq, Kind: name.Kind(), Name: name, Raw: r.payload, Foreign: r.form == given, CreatedAt: timeOf(r.at)}
	var err error
	switch {
	case out.Kind == "":
		return out, r.damaged(x.id, "has the unknown name %q", r.name)
	case r.form == short:
		out.Raw = nil
		out.Payload, err = x.short.Payload(name, r.seq, r.payload)
	case r.form == whole && shortform.HasShortOwn(name, r.payload):
		out.Raw = nil
		out.Payload, err = x.short.Own(name, r.payload)
	case r.form == whole, r.form == given:
		if out.Payload, err = history.DecodePayload(name, r.payload); err != nil {
			return out, r.damaged(x.id, "has an unreadable payload").WithCause(err)
		}
		return out, nil
	default:
		return out, r.damaged(x.id, "has the unknown form %d", r.form)
	}
	if err != nil {
		if _, ok := problem.As(err); !ok {
			return out, err // an error of the database
		}
		return out, r.damaged(x.id, "has a large value that cannot be read").WithCause(err)
	}
	return out, nil
}

func (r *storedRow) damaged(executionID, what string, args ...any) *problem.Error {
	args = append([]any{r.seq, executionID}, args...)
	return problem.New(problem.HistoryCorrupt, "record %d of run %q "+what, args...).
		WithPlace(problem.Place{ExecutionID: executionID}).
		WithHint("The row was not changed. Restore the database from a backup.")
}
