package historysql

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"slices"

	"github.com/workflows-engine/workflows-engine/history"
)

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
		// Another process may have been first.
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
