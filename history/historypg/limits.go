package historypg

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/workflows-engine/workflows-engine/history"
)

var _ history.Limiter = (*Store)(nil)

const (
	putLimit = `INSERT INTO @limits (class, concurrent, per_second, next) VALUES ($1::text, $2::bigint, $3::double precision, 0)
ON CONFLICT (class) DO UPDATE SET concurrent = excluded.concurrent, per_second = excluded.per_second`
	dropLimit    = `DELETE FROM @limits WHERE class = $1::text`
	dropSharesOf = `DELETE FROM @shares WHERE class = $1::text`
)

// SetLimits sets the limits of some classes; see history.Limiter.
func (s *Store) SetLimits(ctx context.Context, limits ...history.SharedLimit) error {
	const doing = "the shared limits were not set"
	if err := history.CheckLimits(limits); err != nil {
		return err
	}
	if len(limits) == 0 {
		return s.mayWrite(ctx, doing)
	}
	limits = slices.SortedFunc(slices.Values(limits), func(a, b history.SharedLimit) int { return cmp.Compare(a.Class, b.Class) }) // the order of Grant
	return s.transact(ctx, doing, true, func(ctx context.Context, tx pgx.Tx) error {
		var batch pgx.Batch
		for _, l := range limits {
			if l.Bounds() {
				batch.Queue(s.texts.of(putLimit), escaped(l.Class), int64(l.Concurrent), l.PerSecond)
				continue
			}
			batch.Queue(s.texts.of(dropLimit), escaped(l.Class))
			batch.Queue(s.texts.of(dropSharesOf), escaped(l.Class))
		}
		return tx.SendBatch(ctx, &batch).Close()
	})
}

// The rows of the shares of live processes, one without a process for a limit without such shares.
const (
	useOfLimits = `WITH {clock} SELECT l.class, l.concurrent, l.per_second, l.next, coalesce(s.process, ''), coalesce(s.slots, 0), coalesce(s.wanted, 0), coalesce(s.starts, 0),
    coalesce(s.since, 0) FROM @limits AS l
LEFT JOIN @shares AS s ON s.class = l.class AND EXISTS (SELECT 1 FROM @processes WHERE process = s.process AND {live})`
	allLimits  = useOfLimits + ` ORDER BY l.class, s.process`
	someLimits = useOfLimits + ` WHERE l.class = ANY ($2::text[]) ORDER BY l.class, s.process`
)

// takeLimit adds a row of useOfLimits to the limits.
func takeLimit(row pgx.Rows, uses []history.LimitUse) ([]history.LimitUse, error) {
	var class, process string
	var concurrent, next, slots, wanted, starts, since int64
	var rate float64
	if err := row.Scan(&class, &concurrent, &rate, &next, &process, &slots, &wanted, &starts, &since); err != nil {
		return uses, err
	}
	if class = unescaped(class); len(uses) == 0 || uses[len(uses)-1].Class != class {
		uses = append(uses, history.LimitUse{SharedLimit: history.SharedLimit{Class: class, Concurrent: int(concurrent), PerSecond: rate}, Next: nanoTime(next)})
	}
	if process != "" {
		u := &uses[len(uses)-1]
		u.Shares = append(u.Shares, history.Share{Process: unescaped(process), Slots: int(slots), Wanted: int(wanted), Starts: int(starts), Since: nanoTime(since)})
	}
	return uses, nil
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
func (s *Store) SharedLimits(ctx context.Context) (uses []history.LimitUse, err error) {
	err = s.read(ctx, "the shared limits could not be read", func(q queries) error {
		uses = nil
		return each(ctx, q, s.texts.of(allLimits), func(row pgx.Rows) (err error) {
			uses, err = takeLimit(row, uses)
			return err
		}, s.at())
	})
	return uses, err
}

const (
	lockLimits  = `SELECT 1 FROM @limits WHERE class = ANY ($1::text[]) ORDER BY class FOR UPDATE`
	liveProcess = `WITH {clock} SELECT {now}, EXISTS (SELECT 1 FROM @processes WHERE process = $2::text AND {live})`
	moveNext    = `UPDATE @limits SET next = $2::bigint WHERE class = $1::text AND next <> $2::bigint`
	putShare    = `INSERT INTO @shares (class, process, slots, wanted, starts, since) VALUES ($1::text, $2::text, $3::bigint, $4::bigint, $5::bigint, $6::bigint)
ON CONFLICT (class, process) DO UPDATE SET slots = excluded.slots, wanted = excluded.wanted, starts = excluded.starts, since = excluded.since`
	dropShare = `DELETE FROM @shares WHERE class = $1::text AND process = $2::text`
	// Renewals and releases delete the shares of processes whose lease has ended.
	dropShares = `DELETE FROM @shares AS s WHERE NOT EXISTS (SELECT 1 FROM @processes WHERE process = s.process AND {live})`
)

// Grant gives a process slots and start times; see history.Limiter. It locks the rows of the limits in one statement, and reads the shares in the
// next one: a statement that waits for a lock goes on with the shares of before it waited, and would grant them once more.
func (s *Store) Grant(ctx context.Context, process string, wants ...history.Want) (granted []history.Granted, err error) {
	const doing = "slots of the shared limits were not granted"
	if err := history.CheckWants(process, wants); err != nil {
		return nil, err
	}
	classes := make([]string, len(wants))
	for i := range wants {
		classes[i] = key(wants[i].Class)
	}
	err = s.transact(ctx, doing, false, func(ctx context.Context, tx pgx.Tx) error {
		var read, write pgx.Batch
		read.Queue(s.texts.of(lockLimits), classes)
		var ms int64
		var isLive bool
		read.Queue(s.texts.of(liveProcess), s.at(), escaped(process)).QueryRow(func(row pgx.Row) error { return row.Scan(&ms, &isLive) })
		var uses []history.LimitUse
		read.Queue(s.texts.of(someLimits), s.at(), classes).Query(func(rows pgx.Rows) (err error) {
			for rows.Next() && err == nil {
				uses, err = takeLimit(rows, uses)
			}
			return cmp.Or(err, rows.Err())
		})
		if err := tx.SendBatch(ctx, &read).Close(); err != nil {
			return err
		}
		granted = make([]history.Granted, len(wants))
		for i := range wants {
			w := &wants[i]
			u := &history.LimitUse{SharedLimit: history.SharedLimit{Class: w.Class}}
			if at := slices.IndexFunc(uses, func(u history.LimitUse) bool { return u.Class == w.Class }); at >= 0 {
				u = &uses[at]
			}
			if !isLive {
				granted[i] = history.Granted{Limit: u.SharedLimit, Next: u.Next, Now: timeOf(ms)}
				continue
			}
			if granted[i] = u.Grant(process, w, timeOf(ms)); !u.Bounds() {
				continue
			}
			write.Queue(s.texts.of(moveNext), classes[i], unixNano(u.Next))
			if share, holds := u.ShareOf(process); holds {
				write.Queue(s.texts.of(putShare), classes[i], escaped(process), int64(share.Slots), int64(share.Wanted), int64(share.Starts), unixNano(share.Since))
			} else {
				write.Queue(s.texts.of(dropShare), classes[i], escaped(process))
			}
		}
		if write.Len() == 0 {
			return nil
		}
		return tx.SendBatch(ctx, &write).Close()
	})
	if err != nil {
		return nil, err
	}
	return granted, nil
}
