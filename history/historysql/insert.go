package historysql

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/history"
)

const (
	// maxInsertRows is the number of rows that one statement inserts; a longer batch takes several.
	maxInsertRows = 32
	// A batch of up to maxShapeRows records with one time gets a statement of its own, as long as a connection has fewer
	// than maxShapes of these. Runs repeat a handful of them.
	maxShapeRows = 12
	maxShapes    = 64
)

// insertBatch inserts the records. If it fails, the transaction must be rolled back: OR FAIL leaves the rows before the
// failure, because it spares SQLite a copy of every page that it changes.
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

// insertStatements holds the statement for each number of rows of any kind.
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

// shapeOf returns a statement that contains the kinds and names of the records and binds one time, so that two of three
// values need not be bound. The names are of the closed list; see history.Batch.Check.
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
