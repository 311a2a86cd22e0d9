package history

// Wrap returns a store that answers as outer, which calls inner, and that keeps inner's optional interfaces (Importer, Keyring,
// Prober, Pruner, Shrinker, Verifier, Watcher) where outer does not implement them. A struct that embeds a Store, for metrics or faults, has
// none of them by itself: it could not be pruned or verified.
//
//	store = history.Wrap(timed{Store: store}, store)
func Wrap(outer, inner Store) Store { return wrapped{outer, inner} }

type wrapped struct {
	Store
	inner Store
}

// As returns a store as an optional interface T, if it has it: the store itself, or one that was wrapped.
func As[T any](s Store) (T, bool) {
	for {
		w, ok := s.(wrapped)
		if !ok {
			t, ok := s.(T)
			return t, ok
		}
		if t, ok := As[T](w.Store); ok {
			return t, true
		}
		s = w.inner
	}
}
