package historypg

import (
	"bytes"
	"context"
	"crypto/rand"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// signatureLines joins signature blocks, one a line.
func signatureLines(blocks [][]byte) string { return escaped(string(bytes.Join(blocks, []byte("\n")))) }

// signaturesOf splits the column signatures.
func signaturesOf(lines string) (blocks [][]byte) {
	if lines == "" {
		return nil
	}
	for _, line := range strings.Split(unescaped(lines), "\n") {
		blocks = append(blocks, []byte(line))
	}
	return blocks
}

const (
	readDefinition       = `SELECT hash, name, version, text, signatures FROM @definitions WHERE hash = $1::text`
	readDefinitionByName = `SELECT hash, name, version, text, signatures FROM @definitions
WHERE name = $1::text AND ($2::text = '' OR version = $2::text) ORDER BY number DESC LIMIT 1`
	allDefinitions = `SELECT hash, name, version, text, signatures FROM @definitions ORDER BY number`
)

// Definition returns a stored definition by its hash; see history.Store.
func (s *Store) Definition(ctx context.Context, hash string) (history.StoredDefinition, error) {
	return s.definition(ctx, readDefinition, key(hash))
}

// DefinitionByName returns the definition stored last under a name; see history.Store.
func (s *Store) DefinitionByName(ctx context.Context, name, version string) (history.StoredDefinition, error) {
	return s.definition(ctx, readDefinitionByName, key(name), key(version))
}

func (s *Store) definition(ctx context.Context, text string, args ...any) (d history.StoredDefinition, err error) {
	found := false
	err = s.read(ctx, "the definition could not be read", func(q queries) error {
		return each(ctx, q, s.texts.of(text), func(row pgx.Rows) (err error) {
			found = true
			d, err = scanDefinition(row)
			return err
		}, args...)
	})
	switch {
	case err != nil:
		return history.StoredDefinition{}, err
	case !found:
		return history.StoredDefinition{}, problem.New(problem.DefinitionNotFound, "the definition is not stored")
	}
	return d, nil
}

func scanDefinition(row pgx.Rows) (d history.StoredDefinition, err error) {
	var text, signatures string
	err = row.Scan(&d.Hash, &d.Name, &d.Version, &text, &signatures)
	d.Hash, d.Name, d.Version, d.Text, d.Signatures = unescaped(d.Hash), unescaped(d.Name), unescaped(d.Version), []byte(unescaped(text)), signaturesOf(signatures)
	return d, err
}

const listDefinitions = `SELECT number, hash, name, version, stored_at FROM @definitions WHERE number < $1::bigint ORDER BY number DESC LIMIT $2::bigint`

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
	err = s.read(ctx, "the definitions could not be listed", func(q queries) error {
		var last int64
		page = history.DefinitionPage{}
		return each(ctx, q, s.texts.of(listDefinitions), func(row pgx.Rows) error {
			if len(page.Definitions) == size {
				page.NextCursor = strconv.FormatInt(last, 10)
				return nil
			}
			var d history.DefinitionEntry
			var at int64
			err := row.Scan(&last, &d.Hash, &d.Name, &d.Version, &at)
			d.Hash, d.Name, d.Version, d.StoredAt = unescaped(d.Hash), unescaped(d.Name), unescaped(d.Version), timeOf(at)
			page.Definitions = append(page.Definitions, d)
			return err
		}, before, int64(size+1))
	})
	if err != nil {
		return history.DefinitionPage{}, err
	}
	return page, nil
}

const (
	putDefinition = `WITH {clock} INSERT INTO @definitions (hash, name, version, text, signatures, stored_at)
VALUES ($2::text, $3::text, $4::text, $5::text, $6::text, {now}) ON CONFLICT (hash) DO NOTHING`
	lockSignatures = `SELECT signatures FROM @definitions WHERE hash = $1::text FOR UPDATE`
	putSignatures  = `UPDATE @definitions SET signatures = $2::text WHERE hash = $1::text`
)

// PutDefinition stores a definition; see history.Store.
func (s *Store) PutDefinition(ctx context.Context, d history.StoredDefinition) error {
	if err := d.Check(); err != nil {
		return err
	}
	return s.transact(ctx, "the definition was not stored", true, func(ctx context.Context, tx pgx.Tx) error { return s.putDefinition(ctx, tx, &d) })
}

func (s *Store) putDefinition(ctx context.Context, tx pgx.Tx, d *history.StoredDefinition) error {
	_, err := tx.Exec(ctx, s.texts.of(putDefinition), s.at(), escaped(d.Hash), escaped(d.Name), escaped(d.Version), escaped(string(d.Text)),
		signatureLines(history.AddSignatures(nil, d.Signatures)))
	if err == nil && len(d.Signatures) > 0 {
		err = s.addSignatures(ctx, tx, d)
	}
	return err
}

// addSignatures adds the signatures of a definition that is stored.
func (s *Store) addSignatures(ctx context.Context, tx pgx.Tx, d *history.StoredDefinition) error {
	var stored string
	if _, err := first(ctx, tx, s.texts.of(lockSignatures), []any{escaped(d.Hash)}, &stored); err != nil {
		return err
	}
	merged := signatureLines(history.AddSignatures(signaturesOf(stored), d.Signatures))
	if merged == stored {
		return nil
	}
	_, err := tx.Exec(ctx, s.texts.of(putSignatures), escaped(d.Hash), merged)
	return err
}

var _ history.Keyring = (*Store)(nil)

const (
	readKey = `SELECT value FROM @keys WHERE name = $1::text`
	putKey  = `INSERT INTO @keys (name, value) VALUES ($1::text, $2::bytea) ON CONFLICT (name) DO NOTHING`
)

// Key returns the key of a name; see history.Keyring.
func (s *Store) Key(ctx context.Context, name string) (value []byte, err error) {
	const doing = "the key was not read"
	found := false
	look := func() error {
		return s.read(ctx, doing, func(q queries) (err error) {
			found, err = first(ctx, q, s.texts.of(readKey), []any{escaped(name)}, &value)
			return err
		})
	}
	if err := look(); err != nil || found {
		return value, err
	}
	fresh := make([]byte, history.KeyBytes)
	rand.Read(fresh)
	err = s.write(ctx, doing, true, func(ctx context.Context, c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, s.texts.of(putKey), escaped(name), fresh)
		return err
	})
	if err == nil {
		err = look() // another process may have stored one first
	}
	return value, err
}
