package graph_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

const crawlWorkflow = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: crawl, version: 1.0.0}
state_schema: {type: object, properties: {site: {type: string}, pages: {type: integer}, bytes: {type: integer}}}
nodes:
  - {id: start, type: start}
  - {id: crawl, type: step, config: {handler: "urn:example:crawl"}}
  - {id: end, type: end, config: {output_mapping: .bytes}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: crawl}
  - {source: crawl, target: end}
`

// crawler fetches the pages of a site in one attempt, and records each of them.
type crawler struct{ client *http.Client }

func (c crawler) Execute(context.Context, activities.Request) (activities.Result, error) {
	return activities.Result{}, activities.Fail("HANDLER_NOT_FOUND", "there is only the crawler")
}

func (c crawler) Capabilities(n activities.Node) activities.Capabilities {
	if n.Config["handler"] != "urn:example:crawl" {
		return activities.Capabilities{}
	}
	return activities.Capabilities{Work: c.work}
}

func (c crawler) work(ctx context.Context, req activities.Request, j activities.Journal) (activities.End, error) {
	state := req.State()
	pages, _ := state["pages"].(float64)
	steps, err := j.Steps(ctx) // what is recorded, also by a process that has died since
	if err != nil {
		return activities.End{}, err
	}
	done, bytes := 0, 0
	for _, s := range steps {
		if s.Kind == "fetched" { // the others are rests
			done, bytes = done+1, bytes+int(s.Body["bytes"].(float64))
		}
	}
	for done < int(pages) {
		page := fmt.Sprintf("%v/%d", state["site"], done+1)
		n, err := c.fetch(ctx, page)
		switch {
		case ctx.Err() != nil:
			return activities.End{}, activities.Interrupted(ctx, "CRAWL_TIMEOUT", "the crawl")
		case err != nil: // go on in a minute, in whatever process there is then
			return activities.End{Until: time.Now().Add(time.Minute)}, nil
		}
		done, bytes = done+1, bytes+n
		if err := j.Record(ctx, activities.Step{
			Key: page, Kind: "fetched", Body: map[string]any{"bytes": n}, Totals: map[string]any{"pages": done, "bytes": bytes},
		}); err != nil {
			return activities.End{}, err
		}
	}
	return activities.End{Result: &activities.Result{Output: map[string]any{"bytes": bytes}}}, nil
}

// fetch returns how many bytes a page has.
func (c crawler) fetch(ctx context.Context, page string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return 0, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, errors.New(response.Status)
	}
	n, err := io.Copy(io.Discard, response.Body)
	return int(n), err
}

// A long activity that goes on where it was after the end of its process: what it records with its journal is not done again.
func ExampleNew_journal() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "This is page ", strings.TrimPrefix(r.URL.Path, "/"))
	}))
	defer site.Close()
	runner, err := graph.New(historymem.New(), graph.Options{Activities: activities.Composite{Step: crawler{site.Client()}}})
	check(err)
	defer runner.Close()
	doc, err := definition.ParseYAML([]byte(crawlWorkflow))
	check(err)
	run, err := runner.Start(context.Background(), graph.StartRequest{Definition: doc, Input: map[string]any{"site": site.URL, "pages": 3}})
	check(err)
	fmt.Println(run.Status, run.Result)
	records, err := runner.History(context.Background(), graph.HistoryRequest{ExecutionID: run.ExecutionID})
	check(err)
	for _, r := range records {
		if key, kind, n, ok := r.Payload.Step(); ok {
			fmt.Println("step", n, kind, strings.TrimPrefix(key, site.URL), r.Payload.AgentStep["totals"])
		}
	}
	// Output:
	// completed 42
	// step 1 fetched /1 map[bytes:14 pages:1]
	// step 2 fetched /2 map[bytes:28 pages:2]
	// step 3 fetched /3 map[bytes:42 pages:3]
}

// TestCrawlerRests: a page that cannot be fetched is tried again a minute later, and the pages before it are not.
func TestCrawlerRests(t *testing.T) {
	t.Parallel()
	site := newSite()
	site.broken = 2
	server := httptest.NewServer(site)
	defer server.Close()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: activities.Composite{Step: crawler{server.Client()}}})
	doc, err := definition.ParseYAML([]byte(crawlWorkflow))
	if err != nil {
		t.Fatal(err)
	}
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: doc, Input: object{"site": server.URL, "pages": 3}})
	if p := first(run); err != nil || run.Status != machine.AwaitingTimer || p == nil || p.Steps != 2 || time.Until(p.Due) > time.Minute || site.fetched[1] != 1 {
		t.Errorf("%v %+v %v", err, run, site.fetched)
	}
}

// site is what is crawled. It counts how often each page was fetched.
type site struct {
	mu      sync.Mutex
	fetched map[int]int
	total   int
	// at is told when total comes to one of these numbers.
	at     []int
	told   chan struct{}
	broken int // the page that is not there
}

func newSite(at ...int) *site {
	return &site{fetched: map[int]int{}, at: at, told: make(chan struct{}, len(at))}
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	s.mu.Lock()
	defer s.mu.Unlock()
	if page == s.broken {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	s.fetched[page]++
	if s.total++; len(s.at) > 0 && s.total >= s.at[0] {
		s.at = s.at[1:]
		s.told <- struct{}{}
	}
	fmt.Fprint(w, "This is page ", page)
}

// The settings of a process that crawls.
const (
	crawlFile = "TEST_CRAWL_FILE"
	crawlSite = "TEST_CRAWL_SITE"
)

const crawledPages = 1000

// TestCrawlerIsKilled kills the process of a crawler three times. The next one goes on where it was: no recorded page is fetched again, and
// each death costs one fetch at most.
func TestCrawlerIsKilled(t *testing.T) {
	t.Parallel()
	if os.Getenv(crawlFile) != "" {
		crawl(t, os.Getenv(crawlFile), os.Getenv(crawlSite))
		return
	}
	site := newSite(200, 450, 701)
	deaths := len(site.at)
	server := httptest.NewServer(site)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "runs.db")
	var output strings.Builder
	process := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCrawlerIsKilled$")
		cmd.Env = append(os.Environ(), crawlFile+"="+file, crawlSite+"="+server.URL)
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // of a test that has failed
		return cmd
	}
	recorded, last := map[int]int{}, 0
	for range deaths {
		cmd := process()
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-site.told:
		case err := <-ended:
			t.Fatalf("the process has ended by itself: %v\n%s", err, output.String())
		}
		_ = cmd.Process.Kill() // SIGKILL, at whatever it does
		<-ended
		// What stands in the journal must not be fetched again.
		site.mu.Lock()
		for _, page := range crawled(t, file, server.URL) {
			if recorded[page] == 0 {
				recorded[page] = site.fetched[page]
			}
		}
		site.mu.Unlock()
		if len(recorded) <= last {
			t.Errorf("a process has recorded no page: %d of %d", len(recorded), last)
		}
		last = len(recorded)
	}
	if err := process().Wait(); err != nil {
		t.Fatalf("the last process: %v\n%s", err, output.String())
	}
	for page, n := range recorded {
		if site.fetched[page] != n {
			t.Errorf("page %d was recorded, and fetched again", page)
		}
	}
	again := 0
	for page := range crawledPages {
		n := site.fetched[page+1]
		if again += n - 1; n == 0 {
			t.Errorf("page %d was not fetched", page+1)
		}
	}
	if again > deaths {
		t.Errorf("%d pages were fetched again, by %d deaths", again, deaths)
	}
	if got := crawled(t, file, server.URL); len(got) != crawledPages || got[crawledPages-1] != crawledPages {
		t.Errorf("%d pages are recorded", len(got))
	}
	t.Logf("%d deaths, %d recorded before them, %d fetched again", deaths, last, again)
}

// crawl is one of the processes: it crawls until the run has ended.
func crawl(t *testing.T, file, site string) {
	store, err := historysql.Open(t.Context(), file, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r, err := graph.New(store, graph.Options{
		Activities: activities.Composite{Step: crawler{http.DefaultClient}}, Work: graph.WorkAll, LeaseTTL: 4 * time.Second, // shorter ones are lost where the machine is busy
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	doc, err := definition.ParseYAML([]byte(crawlWorkflow))
	if err != nil {
		t.Fatal(err)
	}
	run, err := r.Start(t.Context(), graph.StartRequest{
		ExecutionID: "crawl", Definition: doc, AllowExisting: true, Input: object{"site": site, "pages": crawledPages},
	})
	for err == nil && !run.Status.Terminal() {
		run, err = r.Status(t.Context(), graph.StatusRequest{ExecutionID: "crawl", Wait: &graph.Wait{Limit: time.Minute}})
	}
	if err != nil || run.Status != machine.Completed {
		t.Fatalf("%v %+v", err, run)
	}
}

// crawled returns the pages that are recorded, in order.
func crawled(t *testing.T, file, site string) (pages []int) {
	t.Helper()
	store, err := historysql.Open(t.Context(), file, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, r := range records(t, store, "crawl") {
		key, kind, _, _ := r.Payload.Step()
		if page, err := strconv.Atoi(strings.TrimPrefix(key, site+"/")); kind == "fetched" && err == nil {
			pages = append(pages, page)
		}
	}
	return pages
}
