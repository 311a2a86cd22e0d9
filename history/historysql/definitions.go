package historysql

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

const readDefinition = `SELECT hash, name, version, text, signature FROM definitions WHERE hash = ?1`

// Definition returns a stored definition by its hash; see history.Store.
func (s *Store) Definition(ctx context.Context, hash string) (history.StoredDefinition, error) {
	return s.definition(ctx, readDefinition, hash)
}

const readDefinitionByName = `SELECT hash, name, version, text, signature FROM definitions
WHERE name = ?1 AND (?2 = '' OR version = ?2) ORDER BY number DESC LIMIT 1`

// DefinitionByName returns the definition stored last under a name; see history.Store.
func (s *Store) DefinitionByName(ctx context.Context, name, version string) (history.StoredDefinition, error) {
	return s.definition(ctx, readDefinitionByName, name, version)
}

func (s *Store) definition(ctx context.Context, text string, args ...any) (history.StoredDefinition, error) {
	var d history.StoredDefinition
	var signatures string
	found, err := s.readers.row(ctx, text, args, &d.Hash, &d.Name, &d.Version, &d.Text, &signatures)
	switch {
	case err != nil:
		return history.StoredDefinition{}, failure("the definition could not be read", err)
	case !found:
		return history.StoredDefinition{}, problem.New(problem.DefinitionNotFound, "the definition is not stored")
	}
	d.Signatures = signaturesOf(signatures)
	return d, nil
}

const listDefinitions = `SELECT number, hash, name, version, stored_at FROM definitions WHERE number < ?1 ORDER BY number DESC LIMIT ?2`

// Definitions returns a page of the stored definitions; see history.Store.
func (s *Store) Definitions(ctx context.Context, cursor string, limit int) (page history.DefinitionPage, err error) {
	size, err := history.PageSize(limit)
	if err != nil {
		return page, err
	}
	before := int64(math.MaxInt64)
	if cursor != "" {
		if before, err = strconv.ParseInt(cursor, 10, 64); err != nil {
			return page, history.InvalidCursor(cursor)
		}
	}
	var last int64
	err = s.readers.query(ctx, listDefinitions, func(rows *sql.Rows) error {
		if len(page.Definitions) == size {
			page.NextCursor = strconv.FormatInt(last, 10)
			return nil
		}
		var d history.DefinitionEntry
		var at int64
		if err := rows.Scan(&last, &d.Hash, &d.Name, &d.Version, &at); err != nil {
			return err
		}
		if at != 0 {
			d.StoredAt = time.UnixMilli(at).UTC()
		}
		page.Definitions = append(page.Definitions, d)
		return nil
	}, before, size+1)
	if err != nil {
		return history.DefinitionPage{}, failure("the definitions could not be listed", err)
	}
	return page, nil
}

// signaturesOf splits the column signature, which has one signature block per line.
func signaturesOf(lines string) [][]byte {
	if lines == "" {
		return nil
	}
	return bytes.Split([]byte(lines), []byte("\n"))
}

const allDefinitions = `SELECT hash, name, version, text FROM definitions ORDER BY number`

// definitions returns all definitions in insertion order.
func definitions(in querier) (out []history.StoredDefinition, err error) {
	err = in.query(allDefinitions, func(row []driver.Value) error {
		out = append(out, history.StoredDefinition{
			Hash: textOf(row[0]), Name: textOf(row[1]), Version: textOf(row[2]), Text: []byte(textOf(row[3])),
		})
		return nil
	})
	return out, err
}

// PutDefinition stores a definition; see history.Store.
func (s *Store) PutDefinition(ctx context.Context, d history.StoredDefinition) error {
	if err := d.Check(); err != nil {
		return err
	}
	return s.write(ctx, "the definition was not stored", func(c *conn) error { return s.insertDefinition(c, &d) })
}

var _ history.Keyring = (*Store)(nil)

const (
	readKey = `SELECT value FROM keys WHERE name = ?1`
	putKey  = `INSERT INTO keys (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING`
)

// Key returns the key of a name; see history.Keyring.
func (s *Store) Key(ctx context.Context, name string) ([]byte, error) {
	const doing = "the key was not read"
	var key []byte
	if found, err := s.readers.row(ctx, readKey, []any{name}, &key); err != nil || found {
		return key, failure(doing, err)
	}
	fresh := make([]byte, history.KeyBytes)
	rand.Read(fresh)
	err := s.write(ctx, doing, func(c *conn) error {
		if _, err := c.exec(putKey, name, fresh); err != nil {
			return err
		}
		// Another process may have stored a key first.
		return c.query(readKey, func(row []driver.Value) error {
			value, _ := row[0].([]byte)
			key = slices.Clone(value)
			return nil
		}, name)
	})
	if err != nil {
		return nil, err
	}
	return key, nil
}
