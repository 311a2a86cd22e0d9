package history_test

import (
	"context"
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// timed is a store as an embedder may write one.
type timed struct{ history.Store }

// forgetful is one that prunes in its own way.
type forgetful struct{ history.Store }

func (forgetful) Prune(context.Context, history.PruneQuery) (history.PrunePage, error) {
	return history.PrunePage{}, nil
}

func (forgetful) PruneDefinitions(context.Context, bool) ([]history.StoredDefinition, error) {
	return nil, nil
}

// TestWrappedStoreKeepsItsInterfaces: a wrapped store can do what the store inside can; what the wrapper can do itself goes first.
func TestWrappedStoreKeepsItsInterfaces(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	if _, ok := history.As[history.Pruner](timed{store}); ok {
		t.Error("a struct that embeds a Store prunes by itself: the test shows nothing")
	}
	once := history.Wrap(timed{store}, store)
	twice := history.Wrap(timed{once}, once)
	for name, s := range map[string]history.Store{"plain": store, "once": once, "twice": twice} {
		_, prunes := history.As[history.Pruner](s)
		_, imports := history.As[history.Importer](s)
		_, keys := history.As[history.Keyring](s)
		_, verifies := history.As[history.Verifier](s)
		_, shrinks := history.As[history.Shrinker](s)
		_, queues := history.As[history.Queue](s)
		_, lists := history.As[history.Roster](s)
		_, limits := history.As[history.Limiter](s)
		if !limits || !prunes || !imports || !keys || !queues || !lists || verifies || shrinks {
			t.Errorf("%s: prunes %t, imports %t, keys %t, queues %t, lists %t, limits %t, verifies %t, shrinks %t", name, prunes, imports, keys, queues, lists, limits, verifies, shrinks)
		}
	}
	own := history.Wrap(timed{history.Wrap(forgetful{store}, store)}, history.Wrap(forgetful{store}, store))
	if p, ok := history.As[history.Pruner](own); !ok {
		t.Error("the wrapper's own is lost")
	} else if _, isOwn := p.(forgetful); !isOwn {
		t.Errorf("pruned by %T", p)
	}
}
