package httpworkflow_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/httpworkflow"
)

// A document is used without asking as long as Cache-Control allows, then asked for with its ETag.
func TestCache(t *testing.T) {
	t.Parallel()
	var version, unchanged atomic.Int64
	version.Store(1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		v := version.Load()
		tag := `"` + strconv.FormatInt(v, 10) + `"`
		w.Header().Set("ETag", tag)
		w.Header().Set("Cache-Control", r.URL.Query().Get("c"))
		if r.Header.Get("If-None-Match") == tag {
			unchanged.Add(1)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, text(strconv.FormatInt(v, 10)))
	})
	now := time.Unix(1_800_000_000, 0)
	r := open(t, httpworkflow.Config{
		Allow: []string{s.URL}, PrivateNetworks: loopback, Now: func() time.Time { return now },
	})
	asked := func(ref, pin, want string, count, same int64) {
		t.Helper()
		before, sameBefore := s.count(), unchanged.Load()
		resolve(t, r, ref, pin, want)
		if n, m := s.count()-before, unchanged.Load()-sameBefore; int64(n) != count || m != same {
			t.Errorf("asked %d times and %d times it was unchanged, want %d and %d", n, m, count, same)
		}
	}
	minute := s.URL + "/?c=private,%20Max-Age=60"
	asked(minute, "", "1", 1, 0)
	now = now.Add(59 * time.Second)
	version.Store(2)
	asked(minute, "", "1", 0, 0)
	now = now.Add(time.Second)
	asked(minute, "", "2", 1, 0)
	now = now.Add(time.Minute)
	asked(minute, "", "2", 1, 1)
	asked(minute, "", "2", 0, 0)

	// Without a word about caching it is asked for each time, but sent once.
	always := s.URL + "/?c="
	asked(always, "", "2", 1, 0)
	asked(always, "", "2", 1, 1)
	asked(s.URL+"/?c=no-cache,max-age=60", "", "2", 1, 0)
	asked(s.URL+"/?c=no-cache,max-age=60", "", "2", 1, 1)
	asked(s.URL+"/?c=no-store", "", "2", 1, 0)
	asked(s.URL+"/?c=no-store", "", "2", 1, 0)

	// What is pinned cannot change, so that it is not asked for again; another pin asks at once.
	asked(always, enginetest.Define(t, text("2")).Hash(), "2", 0, 0)
	version.Store(3)
	asked(minute, strings.Repeat("0", 64), "3", 1, 0)
}

// However many runs want a document at the same time, it is asked for once, and only so many are kept.
func TestCacheIsShared(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprint(w, text("1"))
	})
	r := open(t, httpworkflow.Config{Allow: []string{s.URL}, PrivateNetworks: loopback, MaxDocuments: 2})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if _, err := r.ResolveWorkflow(t.Context(), s.URL+"/a", ""); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if n := s.count(); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
	for _, path := range []string{"/b", "/a", "/c", "/a", "/b"} {
		resolve(t, r, s.URL+path, "", "1")
	}
	if n := s.count(); n != 4 {
		t.Errorf("asked %d times, want 4: the one used longest ago goes", n)
	}
}
