package historymem

import (
	"context"
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/history"
)

var _ history.Limiter = (*Store)(nil)

// SetLimits sets the limits of some classes; see history.Limiter.
func (s *Store) SetLimits(ctx context.Context, limits ...history.SharedLimit) error {
	if err := history.CheckLimits(limits); err != nil {
		return err
	}
	return s.do(ctx, func() {
		for _, l := range limits {
			switch u := s.limits[l.Class]; {
			case !l.Bounds():
				delete(s.limits, l.Class)
			case u == nil:
				s.limits[l.Class] = &history.LimitUse{SharedLimit: l}
			default:
				u.SharedLimit = l
			}
		}
	})
}

// SharedLimits returns the limits; see history.Limiter.
func (s *Store) SharedLimits(ctx context.Context) (uses []history.LimitUse, err error) {
	err = s.do(ctx, func() {
		for _, class := range slices.Sorted(maps.Keys(s.limits)) {
			u := *s.living(s.limits[class])
			u.Shares = slices.Clone(u.Shares)
			uses = append(uses, u)
		}
	})
	return uses, err
}

// living drops the shares of processes whose lease has ended.
func (s *Store) living(u *history.LimitUse) *history.LimitUse {
	u.Shares = slices.DeleteFunc(u.Shares, func(share history.Share) bool { return !s.live(share.Process) })
	if len(u.Shares) == 0 {
		u.Shares = nil
	}
	return u
}

// Grant gives a process slots and start times; see history.Limiter.
func (s *Store) Grant(ctx context.Context, process string, wants ...history.Want) (granted []history.Granted, err error) {
	if err := history.CheckWants(process, wants); err != nil {
		return nil, err
	}
	err = s.do(ctx, func() {
		for i := range wants {
			u := s.limits[wants[i].Class]
			if u == nil {
				u = &history.LimitUse{SharedLimit: history.SharedLimit{Class: wants[i].Class}}
			}
			now := s.clock.Now().UTC().Round(0)
			if s.live(process) {
				granted = append(granted, s.living(u).Grant(process, &wants[i], now))
			} else {
				granted = append(granted, history.Granted{Limit: u.SharedLimit, Next: u.Next, Now: now})
			}
		}
	})
	return granted, err
}

// forgetShares drops the shares of processes whose lease has ended.
func (s *Store) forgetShares() {
	for _, u := range s.limits {
		s.living(u)
	}
}
