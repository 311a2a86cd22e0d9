package pagetest

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// BenchmarkUI measures the program over 100,000 runs, on Linux: how soon it is ready, its memory, and how soon a list is shown. Then a process changes 60
// runs a second for ten seconds, with the list open: the load of the program and of the page, in percent of a processor, and the tasks over 50 ms.
func BenchmarkUI(b *testing.B) {
	runs, seconds := 100_000, 10
	if testing.Short() {
		runs, seconds = 1000, 2
	}
	s := newSite(b, func(s *site) { historytest.FillRuns(b, s.store, runs) })
	for b.Loop() {
		s.stop()
		began := time.Now()
		link := s.serve()
		at, err := url.Parse(link)
		if err != nil {
			b.Fatal(err)
		}
		answer, err := http.Get("http://127.0.0.1:" + at.Port() + "/") // of a stranger: refused
		if err != nil {
			b.Fatal(err)
		}
		answer.Body.Close()
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ready-ms")
		page := newProfile(b).tab(b) // a browser that opens a window takes the processors from the program
		page.open(link)
		page.at("/")
		s.visit(page, "/runs")
		page.until(`document.querySelectorAll("tr[data-run]").length === 100`)
		s.visit(page, "/runs") // warm
		b.ReportMetric(eval[float64](page, `performance.getEntriesByType("navigation")[0].loadEventEnd`), "shown-ms")
		live := make([]*historytest.Trace, 60)
		for i := range live {
			live[i] = historytest.NewTrace(b, fmt.Sprintf("live-%02d", i)+strconv.FormatInt(began.UnixNano(), 36))
			live[i].Now = time.Now()
			live[i].Append(s.store, historytest.Start("live", "host_mediated")...)
		}
		s.visit(page, "/runs")
		eval[any](page, `window.slow = []; new PerformanceObserver(l => l.getEntries().forEach(e => window.slow.push(Math.round(e.duration)))).observe({type: "longtask"}); null`)
		usedBefore, busyBefore, start := s.used(), page.busy(), time.Now()
		tick := time.NewTicker(time.Second / 60)
		for i := range 60 * seconds {
			<-tick.C
			x := live[i%len(live)]
			x.Now = time.Now()
			x.Append(s.store, "E NodeScheduled n12")
		}
		tick.Stop()
		took := time.Since(start).Seconds()
		b.ReportMetric(100*(s.used()-usedBefore)/took, "server-%")
		b.ReportMetric(100*(page.busy()-busyBefore)/took, "page-%")
		slow := eval[[]float64](page, "window.slow")
		b.ReportMetric(float64(len(slow)), "tasks>50ms")
		b.ReportMetric(float64(len(live)*seconds)/took, "changes/s")
		b.ReportMetric(s.resident(), "MiB")
	}
}

// busy returns the time for which the main thread of the page has worked, in seconds.
func (b *tab) busy() float64 {
	b.Helper()
	_, err := chromedp.Call(b.ctx, performance.Enable, performance.EnableParams{})
	b.must(err)
	found, err := chromedp.Call(b.ctx, performance.GetMetrics, cdp.Empty{})
	b.must(err)
	for _, m := range found.Metrics {
		if m.Name == "TaskDuration" {
			return m.Value
		}
	}
	b.Fatal("no TaskDuration")
	return 0
}

// used returns the processor time of the program, in seconds.
func (s *site) used() float64 {
	s.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		s.Skip(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100 // of clock ticks
}

// resident returns the memory of the program, in MiB.
func (s *site) resident() float64 {
	s.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.Skip(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kilobytes, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	return kilobytes / 1024
}
