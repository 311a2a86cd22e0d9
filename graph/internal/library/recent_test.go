package library

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func keys(r *recent[string, int]) string {
	var all []string
	for at := r.order.Front(); at != nil; at = at.Next() {
		all = append(all, at.Value.(*entry[string, int]).key)
	}
	if len(all) != len(r.byKey) {
		all = append(all, fmt.Sprintf("%d by key", len(r.byKey)))
	}
	return strings.Join(all, " ")
}

func TestRecentIsBounded(t *testing.T) {
	t.Parallel()
	r := newRecent[string, int](3, 100)
	for _, c := range []struct {
		key   string
		bytes int
		want  string
	}{
		{"a", 10, "a"}, {"b", 10, "b a"}, {"c", 10, "c b a"}, {"a", 10, "a c b"}, // found, and the one used last
		{"d", 10, "d a c"}, // one too many
		{"e", 85, "e d"},   // too many bytes
		{"f", 101, ""},     // alone more than fits
	} {
		if v, err := r.get(c.key, c.bytes, func() (int, error) { return len(c.key), nil }); v != 1 || err != nil {
			t.Errorf("%s: %d, %v", c.key, v, err)
		}
		if got := keys(r); got != c.want {
			t.Errorf("after %s: %q, want %q", c.key, got, c.want)
		}
	}
	if r.bytes != 0 {
		t.Errorf("%d bytes of nothing", r.bytes)
	}
	if _, found := r.find("a"); found {
		t.Error("found what was dropped")
	}
}

// TestRecentMakesOnce: callers that ask at the same time share a value. An error is not kept, and each of them gets its own.
func TestRecentMakesOnce(t *testing.T) {
	t.Parallel()
	r := newRecent[string, int](3, 100)
	for _, failing := range []bool{true, false} {
		made := make(chan struct{}, 100)
		let := make(chan struct{})
		errs := make(chan error, 5)
		for range cap(errs) {
			go func() {
				v, err := r.get("a", 1, func() (int, error) {
					made <- struct{}{}
					<-let
					if failing {
						return 0, errors.New("no")
					}
					return 7, nil
				})
				if v != 7 && !failing {
					t.Errorf("%d, %v", v, err)
				}
				errs <- err
			}()
		}
		<-made // the others come meanwhile, or find the value
		close(let)
		seen := map[error]bool{}
		for range cap(errs) {
			seen[<-errs] = true
		}
		if _, found := r.find("a"); found == failing || failing && len(seen) != cap(errs) || !failing && len(made) != 0 {
			t.Errorf("found %v, %d errors, made %d times more", found, len(seen), len(made))
		}
	}
}

// TestRecentOfManyCallers: callers of more values than are kept each get the value of their key.
func TestRecentOfManyCallers(t *testing.T) {
	t.Parallel()
	r := newRecent[int, int](4, 100)
	var callers sync.WaitGroup
	for caller := range 4 {
		callers.Go(func() {
			for i := range 500 {
				key := (i*7 + caller) % 8
				if v, err := r.get(key, 1, func() (int, error) { return 10 * key, nil }); v != 10*key || err != nil {
					t.Errorf("%d: %d, %v", key, v, err)
				}
			}
		})
	}
	callers.Wait()
	if n := r.order.Len(); n != 4 || len(r.byKey) != 4 || r.bytes != 4 {
		t.Errorf("%d values, %d by key, %d bytes", n, len(r.byKey), r.bytes)
	}
}
