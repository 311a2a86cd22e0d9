package historysql

import (
	"cmp"
	"context"
	"database/sql/driver"
	"time"

	"github.com/workflows-engine/workflows-engine/history/internal/storeclock"
)

// The processes that share a file agree on two clocks, which go on where the machine's clock steps; see storeclock and
// FORMAT.md. Each writes what it knows with its lease, and reads what others know then and whenever it is asked for the time.

const readClocks = `SELECT COALESCE(max(leases) FILTER (WHERE boot = ?1), 0), COALESCE(max(floor) FILTER (WHERE boot = ?1), 0),
    COALESCE(max(seen) FILTER (WHERE seen <= ?2), 0) FROM clocks`

// Now returns the store's time; see history.Store.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	const doing = "the time was not read"
	if ctx.Err() != nil || s.closing.Err() != nil {
		return time.Time{}, failure(doing, cmp.Or(context.Cause(ctx), error(errClosed)))
	}
	state := storeclock.State{Boot: s.clock.Boot()}
	newest := s.newest()
	if _, err := s.readers.row(ctx, readClocks, []any{state.Boot, newest}, &state.Leases, &state.Floor, &state.Seen); err != nil {
		return time.Time{}, failure(doing, err)
	}
	s.clock.Agree(state)
	return s.clock.Now(), nil
}

// newest is the newest time that the clocks of others can have and count.
func (s *Store) newest() int64 { return s.clock.Now().Add(storeclock.MaxStep).UnixMilli() }

const putClock = `INSERT INTO clocks (boot, leases, floor, seen) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (boot) DO UPDATE SET floor = excluded.floor, seen = excluded.seen`

// agree reads what other processes know of the clocks, and stores what this one knows, in a transaction.
func (s *Store) agree(c *conn) error {
	boot := s.clock.Boot()
	err := c.query(readClocks, func(row []driver.Value) error {
		state := storeclock.State{Boot: boot}
		for i, v := range []*int64{&state.Leases, &state.Floor, &state.Seen} {
			*v, _ = row[i].(int64)
		}
		s.clock.Agree(state)
		return nil
	}, boot, s.newest())
	if err != nil {
		return err
	}
	state := s.clock.State()
	_, err = c.exec(putClock, state.Boot, state.Leases, state.Floor, state.Seen)
	return err
}

// now is the time by which leases are judged.
func (s *Store) now() int64 { return s.clock.Leases().UnixMilli() }
