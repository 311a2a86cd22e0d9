package page

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/httpguard"
)

// benched is the page over a file, with the cookie of a session.
type benched struct {
	*Server
	store  *historysql.Store
	engine *graph.Runner
	cookie string
}

func benchPage(b *testing.B) *benched {
	b.Helper()
	store := enginetest.Closing(b, enginetest.Must(historysql.Open(b.Context(), filepath.Join(b.TempDir(), "runs.db"), historysql.Options{Synchronous: historysql.Normal})))
	engine := enginetest.Closing(b, enginetest.Must(graph.New(store, graph.Options{DefaultMode: machine.HostMediated, MaxVisits: 1 << 30})))
	s := enginetest.Must(New(Options{Engine: engine, Origin: "http://page.localhost:8123", Version: "test", Redaction: history.DefaultRedaction()}))
	b.Cleanup(s.Close)
	return &benched{s, store, engine, "workflows-engine-8123=" + s.sessions.begin(httpguard.Caller{})}
}

// get returns the answer to a browser's request, and the time to its last byte.
func (s *benched) get(b *testing.B, path string) (body []byte, took time.Duration) {
	r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, path, nil)
	r.Host = "page.localhost:8123"
	r.Header.Set("Cookie", s.cookie)
	w := httptest.NewRecorder()
	began := time.Now()
	s.ServeHTTP(w, r)
	took = time.Since(began)
	if w.Code != http.StatusOK {
		b.Fatalf("%s: status %d: %s", path, w.Code, w.Body)
	}
	return w.Body.Bytes(), took
}

// measure reports the 95th percentile of the time of a page, and its size.
func (s *benched) measure(b *testing.B, path string) {
	b.Helper()
	body, _ := s.get(b, path)
	var all []time.Duration
	for b.Loop() {
		_, took := s.get(b, path)
		all = append(all, took)
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)*95/100].Microseconds())/1000, "p95-ms")
	b.ReportMetric(float64(len(body)), "bytes")
	b.ReportMetric(float64(zipped(body)), "gzip-bytes")
}

// zipped returns the size of a text after gzip.
func zipped(text []byte) int {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(text)
	_ = w.Close()
	return out.Len()
}

// BenchmarkPages measures pages of 100,000 runs, and the first and the second view of a run of 10,000 records.
func BenchmarkPages(b *testing.B) {
	runs := 100_000
	if testing.Short() {
		runs = 1000
	}
	s := benchPage(b)
	historytest.FillRuns(b, s.store, runs)
	for name, path := range map[string]string{
		"start": "/", "list": "/runs", "label": "/runs?label=batch%3D50", "common_label": "/runs?label=common%3Dyes", "phase": "/runs?phase=completed",
		"middle": "/runs?cursor=" + history.Cursor{UpdatedAt: historytest.Begin.Add(time.Duration(runs/6) * time.Millisecond), ExecutionID: "8"}.String(),
	} {
		b.Run(name, func(b *testing.B) { s.measure(b, path) })
	}
}

// BenchmarkLongRun measures the first view of the page of a run with 10,000 records, and further ones, which read the new records alone,
// and the same of a visit.
func BenchmarkLongRun(b *testing.B) {
	records := int64(10_000)
	if testing.Short() {
		records = 500
	}
	s := benchPage(b)
	again := enginetest.Define(b, `{"document":{"schema":"s","name":"again","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"a","type":"start"},
		{"id":"work","type":"tool_call","config":{"server":"s","tool":"t","arguments":{"query":"a question of some length","access_token":"hidden"}}},
		{"id":"loop","type":"switch","config":{"cases":[{"when":".n == -1","target":"z"}],"default":"work"}},{"id":"z","type":"end"}],
		"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"work"},{"source":"work","target":"loop"}]}`)
	run, err := s.engine.Start(b.Context(), graph.StartRequest{ExecutionID: "long", Definition: again, Input: map[string]any{"n": 1.0}})
	for n := 0; err == nil && run.Seq < records; n++ {
		run, err = s.engine.SubmitActivity(b.Context(), graph.SubmitRequest{ExecutionID: "long", NodeID: "work", OK: true, Result: map[string]any{"n": float64(n), "answer": "an answer of some length", "api_key": "hidden"}})
	}
	if err != nil {
		b.Fatal(err)
	}
	for name, path := range map[string]string{
		"first": "/runs/long", "again": "/runs/long", "first_visit": "/runs/long/visits/work/9", "visit": "/runs/long/visits/work/9",
	} {
		b.Run(name, func(b *testing.B) {
			body, _ := s.get(b, path)
			for b.Loop() {
				if strings.HasPrefix(name, "first") {
					s.folds.list = nil
				}
				s.get(b, path)
			}
			b.ReportMetric(float64(len(body)), "bytes")
			b.ReportMetric(float64(zipped(body)), "gzip-bytes")
		})
	}
}
