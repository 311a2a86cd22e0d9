package historymem

import (
	"context"
	"crypto/rand"
	"slices"

	"github.com/workflows-engine/workflows-engine/history"
)

var _ history.Keyring = (*Store)(nil)

// Key returns the key of a name; see history.Keyring.
func (s *Store) Key(ctx context.Context, name string) ([]byte, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if s.keys[name] == nil {
		key := make([]byte, history.KeyBytes)
		rand.Read(key)
		s.keys[name] = key
	}
	return slices.Clone(s.keys[name]), nil
}
