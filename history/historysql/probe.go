package historysql

import (
	"context"
	"crypto/rand"
	"strings"
)

// probeBytes is how much a probe writes: a step of a run may take as much, and a smaller write can still find room in the log of a full disk.
const probeBytes = 64 << 10

const (
	addProbe  = `INSERT INTO processes (process, expires) VALUES (?1, 0)`
	dropProbe = `DELETE FROM processes WHERE process = ?1`
)

// Probe commits a write; see history.Prober. A row that is added and removed in one transaction is written to the log all the same.
func (s *Store) Probe(ctx context.Context) error {
	return s.write(ctx, "the database cannot be written", func(c *conn) error {
		name := "probe/" + rand.Text() + strings.Repeat(" ", probeBytes)
		if _, err := c.exec(addProbe, name); err != nil {
			return err
		}
		_, err := c.exec(dropProbe, name)
		return err
	})
}
