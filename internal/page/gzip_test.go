package page

import (
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/fragment"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
)

// TestSizes: a page of 100 runs, and the scripts with the style sheet, stay small.
func TestSizes(t *testing.T) {
	t.Parallel()
	s := show(t)
	for i := range pageOfRuns {
		s.start(fmt.Sprintf("%08x-d9cb-469f-a165-%012d", uint32(i)*2654435761, i), asking, map[string]any{"invoice": fmt.Sprint("No ", i)})
	}
	cookie := "workflows-engine-8123=" + s.sessions.begin(httpguard.Caller{})
	for coding, most := range map[string]int{"": 40_000, "gzip": 5000} {
		if got := s.fetch("/runs", cookie, coding).Body.Len(); got > most {
			t.Errorf("the list has %d bytes (%q), more than %d", got, coding, most)
		}
	}
	sum := len(fragment.Style)
	err := fs.WalkDir(static, "static", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(name, ".LICENSE") {
			info, err := d.Info()
			sum += int(info.Size())
			return err
		}
		return err
	})
	if err != nil || sum > 30_000 {
		t.Errorf("scripts and style have %d bytes (%v)", sum, err)
	}
	t.Logf("scripts and style: %d bytes", sum)
}

// fetch returns the answer to a browser's request that accepts a coding.
func (s *shown) fetch(path, cookie, coding string) *httptest.ResponseRecorder {
	s.Helper()
	r := httptest.NewRequestWithContext(s.Context(), http.MethodGet, path, nil)
	r.Host = "page.localhost:8123"
	r.Header.Set("Cookie", cookie)
	r.Header.Set("Accept-Encoding", coding)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// unsigned returns a page without the token of its form, which is another one each time.
func unsigned(page string) string {
	return regexp.MustCompile(`name="form" value="[^"]*"`).ReplaceAllString(page, "")
}

// TestZipped: texts are compressed for those who accept it, and are the same text.
func TestZipped(t *testing.T) {
	t.Parallel()
	s := show(t)
	s.start("r", asking, nil)
	cookie := "workflows-engine-8123=" + s.sessions.begin(httpguard.Caller{})
	for _, path := range []string{"/", "/runs/r/graph.svg", staticPath + "/page.js", staticPath + "/style.css", "/none"} {
		plain := s.fetch(path, cookie, "")
		for coding, want := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0": false, "br": false, "identity": false} {
			w := s.fetch(path, cookie, coding)
			text := w.Body.String()
			if w.Header().Get("Content-Encoding") == "gzip" {
				in, err := gzip.NewReader(w.Body)
				if err != nil {
					t.Fatal(err)
				}
				whole, err := io.ReadAll(in)
				if text = string(whole); err != nil {
					t.Error(err)
				}
			}
			if got := w.Header().Get("Content-Encoding") == "gzip"; got != want && plain.Body.Len() >= minZipped {
				t.Errorf("%s for %q: compressed %v", path, coding, got)
			}
			if unsigned(text) != unsigned(plain.Body.String()) || w.Code != plain.Code || w.Header().Get("Content-Type") != plain.Header().Get("Content-Type") || w.Header().Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s for %q: %d %v, plain %d %v", path, coding, w.Code, w.Header(), plain.Code, plain.Header())
			}
		}
	}
	if w := s.fetch("/favicon.ico", cookie, "gzip"); w.Code != http.StatusNoContent || w.Header().Get("Content-Encoding") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
