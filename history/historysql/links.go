package historysql

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// Links returns what has begun with the past of a run, and where it comes from; see history.Store.
func (s *Store) Links(ctx context.Context, executionID string) ([]history.Link, error) {
	links, err := readLinks(reader{ctx, &s.readers}.query, executionID)
	return links, failure("the links of the run could not be read", err)
}

const linksOf = `SELECT l.from_id, l.to_id, l.kind, l.seq, l.actor, l.at, e.phase FROM run_links AS l INDEXED BY run_links_by_origin
LEFT JOIN executions AS e ON e.execution_id = l.to_id WHERE l.from_id = ?1
UNION ALL
SELECT l.from_id, l.to_id, l.kind, l.seq, l.actor, l.at, e.phase FROM run_links AS l
LEFT JOIN executions AS e ON e.execution_id = l.to_id WHERE l.to_id = ?1 ORDER BY 6, 2`

// readLinks reads the links of a run by a query of a connection or of a reader.
func readLinks(query func(text string, each func(row []driver.Value) error, args ...any) error, executionID string) (links []history.Link, err error) {
	err = query(linksOf, func(row []driver.Value) error {
		seq, _ := row[3].(int64)
		at, _ := row[5].(int64)
		l := history.Link{
			From: textOf(row[0]), To: textOf(row[1]), Kind: history.LinkKind(textOf(row[2])), Seq: seq, Actor: textOf(row[4]),
			At: time.UnixMilli(at).UTC(), Phase: history.Phase(textOf(row[6])),
		}
		if l.Phase == markDeleted {
			l.Phase = ""
		}
		links = append(links, l)
		return nil
	}, executionID)
	return links, err
}

// retriesOf returns the links of all retries of the work of a run, as the transaction sees them.
func retriesOf(c *conn, executionID string) ([]history.Link, error) {
	return history.Retries(executionID, func(id string) ([]history.Link, error) { return readLinks(c.query, id) })
}

const (
	putLink        = `INSERT INTO run_links (to_id, from_id, kind, seq, actor, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`
	handledByRetry = `SELECT retry_id FROM handled WHERE execution_id = ?1`
)

// storeLink stores the link of a batch, unless it is a retry beside another one. Both are one transaction: of two retries that come at once
// the second sees the first.
func storeLink(c *conn, b *history.Batch) error {
	l := b.Link
	if l == nil {
		return nil
	}
	if l.Kind == history.Retried && !l.Again {
		related, err := retriesOf(c, l.From)
		if err != nil {
			return err
		}
		done, err := c.one(handledByRetry, l.From)
		if err == nil {
			err = l.AlreadyRetried(related, textOf(done))
		}
		if err != nil {
			return err
		}
	}
	var actor any
	if l.Actor != "" {
		actor = l.Actor
	}
	_, err := c.exec(putLink, b.ExecutionID, l.From, string(l.Kind), l.Seq, actor, l.At.UnixMilli())
	return err
}
