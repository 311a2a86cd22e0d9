package historytest

import (
	"bytes"
	"sync"
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
)

// keys: every caller gets the same key for a name, also concurrently. Names have different keys, and a caller's changes to a key have
// no effect.
func keys(t *testing.T, s history.Store) {
	k, ok := s.(history.Keyring)
	if !ok {
		t.Skipf("%T keeps no keys", s)
	}
	got := make([][]byte, 8)
	var asking sync.WaitGroup
	for i := range got {
		asking.Go(func() {
			key, err := k.Key(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			got[i] = key
		})
	}
	asking.Wait()
	for _, key := range got {
		if len(key) != history.KeyBytes || !bytes.Equal(key, got[0]) {
			t.Fatalf("keys %x and %x", got[0], key)
		}
	}
	first := bytes.Clone(got[0])
	clear(got[0])
	again, err := k.Key(t.Context(), "a")
	if err != nil || !bytes.Equal(again, first) {
		t.Errorf("again %x, %v; want %x", again, err, first)
	}
	if other, err := k.Key(t.Context(), "b"); err != nil || bytes.Equal(other, first) {
		t.Errorf("another name: %x, %v", other, err)
	}
}
