package historysql

import (
	"context"
	"crypto/rand"
)

// Probe commits a write; see history.Prober. A row that is added and removed in one transaction is written to the log all the same.
func (s *Store) Probe(ctx context.Context) error {
	return s.write(ctx, "the database cannot be written", func(c *conn) error {
		name := "probe/" + rand.Text()
		if _, err := c.exec(addProbe, name); err != nil {
			return err
		}
		_, err := c.exec(dropProbe, name)
		return err
	})
}
