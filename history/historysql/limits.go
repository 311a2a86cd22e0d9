package historysql

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

var _ history.Limiter = (*Store)(nil)

const (
	putLimit = `INSERT INTO limits (class, concurrent, per_second, next) VALUES (?1, ?2, ?3, 0)
ON CONFLICT (class) DO UPDATE SET concurrent = excluded.concurrent, per_second = excluded.per_second`
	dropLimit    = `DELETE FROM limits WHERE class = ?1`
	dropSharesOf = `DELETE FROM shares WHERE class = ?1`
)

// SetLimits sets the limits of some classes; see history.Limiter.
func (s *Store) SetLimits(ctx context.Context, limits ...history.SharedLimit) error {
	const doing = "the shared limits were not set"
	if err := history.CheckLimits(limits); err != nil {
		return err
	}
	return s.share(ctx, doing, 0, func(c *conn) error {
		for _, l := range limits {
			var err error
			if l.Bounds() {
				_, err = c.exec(putLimit, l.Class, int64(l.Concurrent), l.PerSecond)
			} else if _, err = c.exec(dropLimit, l.Class); err == nil {
				_, err = c.exec(dropSharesOf, l.Class)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// The rows of the shares of live processes, one without a process for a limit without such shares.
const (
	useOfLimits = `SELECT l.class, concurrent, per_second, next, s.process, slots, wanted, starts, since FROM limits AS l
LEFT JOIN shares AS s ON s.class = l.class AND EXISTS (SELECT 1 FROM processes AS p WHERE p.process = s.process AND expires > ?1)`
	allLimits = useOfLimits + ` ORDER BY l.class, s.process`
	oneLimit  = useOfLimits + ` WHERE l.class = ?2 ORDER BY s.process`
)

// limitsOf returns the limits from the rows of a query.
func limitsOf(in querier, text string, args ...any) (uses []history.LimitUse, err error) {
	err = in.query(text, func(row []driver.Value) error {
		class := textOf(row[0])
		if len(uses) == 0 || uses[len(uses)-1].Class != class {
			concurrent, _ := row[1].(int64)
			rate, _ := row[2].(float64)
			next, _ := row[3].(int64)
			uses = append(uses, history.LimitUse{
				SharedLimit: history.SharedLimit{Class: class, Concurrent: int(concurrent), PerSecond: rate}, Next: nanoTime(next),
			})
		}
		if row[4] == nil {
			return nil
		}
		slots, _ := row[5].(int64)
		wanted, _ := row[6].(int64)
		starts, _ := row[7].(int64)
		since, _ := row[8].(int64)
		u := &uses[len(uses)-1]
		u.Shares = append(u.Shares, history.Share{
			Process: textOf(row[4]), Slots: int(slots), Wanted: int(wanted), Starts: int(starts), Since: nanoTime(since),
		})
		return nil
	}, args...)
	return uses, err
}

// nanoTime returns a stored time, and unixNano stores one; the zero time is 0.
func nanoTime(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// SharedLimits returns the limits; see history.Limiter.
func (s *Store) SharedLimits(ctx context.Context) ([]history.LimitUse, error) {
	uses, err := limitsOf(reader{ctx, &s.readers}, allLimits, s.now())
	return uses, failure("the shared limits could not be read", err)
}

const (
	liveProcess = `SELECT 1 FROM processes WHERE process = ?1 AND expires > ?2`
	moveNext    = `UPDATE limits SET next = ?2 WHERE class = ?1 AND next <> ?2`
	putShare    = `INSERT INTO shares (class, process, slots, wanted, starts, since) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (class, process) DO UPDATE SET slots = excluded.slots, wanted = excluded.wanted, starts = excluded.starts, since = excluded.since
WHERE slots <> excluded.slots OR wanted <> excluded.wanted OR starts <> excluded.starts OR since <> excluded.since`
	dropShare = `DELETE FROM shares WHERE class = ?1 AND process = ?2`
	// Renewals and releases delete the shares of processes whose lease has ended.
	dropShares = `DELETE FROM shares WHERE NOT EXISTS (SELECT 1 FROM processes AS p WHERE p.process = shares.process AND expires > ?1)`
)

// Grant gives a process slots and start times; see history.Limiter.
func (s *Store) Grant(ctx context.Context, process string, wants ...history.Want) (granted []history.Granted, err error) {
	const doing = "slots of the shared limits were not granted"
	if err := history.CheckWants(process, wants); err != nil {
		return nil, failure(doing, err)
	}
	err = s.share(ctx, doing, 0, func(c *conn) error {
		granted = make([]history.Granted, len(wants)) // the transaction may be a second attempt
		leases := s.now()
		live, err := c.one(liveProcess, process, leases)
		for i := range wants {
			if err != nil {
				return err
			}
			granted[i], err = s.grant(c, process, live != nil, &wants[i], leases)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return granted, nil
}

// grant decides one want within the transaction.
func (s *Store) grant(c *conn, process string, live bool, w *history.Want, leases int64) (g history.Granted, err error) {
	uses, err := limitsOf(c, oneLimit, leases, w.Class)
	if err != nil {
		return g, err
	}
	u := &history.LimitUse{SharedLimit: history.SharedLimit{Class: w.Class}}
	if len(uses) > 0 {
		u = &uses[0]
	}
	now := s.clock.Now().UTC().Round(0)
	if !live {
		return history.Granted{Limit: u.SharedLimit, Next: u.Next, Now: now}, nil
	}
	g = u.Grant(process, w, now)
	if !u.Bounds() {
		return g, nil
	}
	if _, err := c.exec(moveNext, w.Class, unixNano(u.Next)); err != nil {
		return g, err
	}
	if share, holds := u.ShareOf(process); holds {
		_, err = c.exec(putShare, w.Class, process, int64(share.Slots), int64(share.Wanted), int64(share.Starts), unixNano(share.Since))
	} else {
		_, err = c.exec(dropShare, w.Class, process)
	}
	return g, err
}
