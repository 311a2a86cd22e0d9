package pagetest

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// site is a database with its page, which the program serves, and a second process at the database: the test itself.
type site struct {
	testing.TB
	dir, db, origin string
	// printed is the link that the page printed, until a person has opened it.
	printed string
	mu      sync.Mutex // of printed
	// env has further variables of the program.
	env []string
	// store and engine are the test's own at the database.
	store  *historysql.Store
	engine *graph.Runner
	cmd    *exec.Cmd
	log    *bytes.Buffer
}

// newSite makes a database with the workflows of testdata/workflows, fills it and serves its page.
func newSite(t testing.TB, fill func(*site), args ...string) *site {
	t.Helper()
	s := newDatabase(t, fill)
	s.serve(args...)
	return s
}

// newDatabase is newSite without a page.
func newDatabase(t testing.TB, fill func(*site)) *site {
	t.Helper()
	s := &site{TB: t, dir: t.TempDir()}
	s.db = filepath.Join(s.dir, "runs.db")
	store, err := historysql.Open(context.Background(), s.db, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	s.store = store
	s.engine, err = graph.New(store, graph.Options{DefaultMode: machine.HostMediated})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.engine.Close() })
	if fill != nil {
		fill(s)
	}
	return s
}

// command returns the program with the settings of the site.
func (s *site) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	folder, err := filepath.Abs(filepath.Join("testdata", "workflows"))
	if err != nil {
		s.Fatal(err)
	}
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "WORKFLOW_ENGINE_STORE_PATH="+s.db, "WORKFLOW_ENGINE_WORKFLOW_DIR="+folder)
	cmd.Env = append(cmd.Env, s.env...)
	return cmd
}

// serve starts the page.
func (s *site) serve(args ...string) (link string) {
	s.Helper()
	s.cmd = s.command(context.Background(), append([]string{"ui", "--no-open", "--json", "--as", "Kim Berg"}, args...)...)
	s.log = &bytes.Buffer{}
	s.cmd.Stderr = s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(s.stop)
	var printed struct{ Link, Origin string }
	if err := json.NewDecoder(out).Decode(&printed); err != nil {
		_ = s.cmd.Wait()
		s.Fatalf("the page was not served: %v\n%s", err, s.log)
	}
	s.origin, s.printed = printed.Origin, printed.Link
	return printed.Link
}

// stop ends the page as Ctrl-C does.
func (s *site) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	_ = s.cmd.Wait()
	s.cmd = nil
}

// kill ends the page as a lack of memory does.
func (s *site) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// link returns another link to the page.
func (s *site) link(args ...string) string {
	s.Helper()
	out, err := s.command(s.Context(), append([]string{"ui", "--link", "--json"}, args...)...).Output()
	if err != nil {
		s.Fatal(err)
	}
	var printed struct{ Link string }
	if err := json.Unmarshal(out, &printed); err != nil {
		s.Fatal(err)
	}
	return printed.Link
}

// enter opens a tab of a new person, who is let in.
func (s *site) enter(t testing.TB) *tab {
	t.Helper()
	s.mu.Lock()
	link := s.printed
	s.printed = ""
	s.mu.Unlock()
	if link == "" {
		link = s.link()
	}
	b := newProfile(t).tab(t)
	b.open(link)
	b.at("/")
	return b
}

// visit opens a page, which must be found.
func (s *site) visit(b *tab, path string) {
	b.Helper()
	if status := b.open(s.origin + path); status != 200 {
		b.Fatalf("%s: status %d\n%s", path, status, b.seen())
	}
}

// start starts a run of a workflow of testdata/workflows.
func (s *site) start(workflow, id string, input map[string]any, change ...func(*graph.StartRequest)) *view.Run {
	s.Helper()
	req := graph.StartRequest{ExecutionID: id, Definition: s.definition(workflow), Input: input, Wait: graph.Wait{Limit: 10 * time.Second}}
	for _, f := range change {
		f(&req)
	}
	run, err := s.engine.Start(graph.WithActor(context.Background(), history.Actor{Via: "cli", Name: "test"}), req)
	if err != nil {
		s.Fatal(err)
	}
	return run
}

func (s *site) definition(workflow string) *definition.Document {
	s.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "workflows", workflow+".workflow.yaml"))
	if err != nil {
		s.Fatal(err)
	}
	d, err := definition.ParseYAML(text)
	if err != nil {
		s.Fatal(err)
	}
	return d
}

// status returns the run.
func (s *site) status(id string) *view.Run {
	s.Helper()
	run, err := s.engine.Status(context.Background(), graph.StatusRequest{ExecutionID: id})
	if err != nil {
		s.Fatal(err)
	}
	return run
}

// answers returns the records of answers to a run's questions, with their actors.
func (s *site) answers(id string) (list []history.Record) {
	s.Helper()
	records, err := s.engine.History(context.Background(), graph.HistoryRequest{ExecutionID: id})
	if err != nil {
		s.Fatal(err)
	}
	var actor *history.Actor // of the command before
	for _, r := range records {
		if r.Name == history.ResumeInterrupt {
			actor = r.Payload.Actor
		}
		if r.Name == history.InterruptResumed {
			r.Payload.Actor = actor
			list = append(list, r)
		}
	}
	return list
}

// perform submits the result of a pending activity, as a host does.
func (s *site) perform(id, node string, result map[string]any) {
	s.Helper()
	for _, p := range s.status(id).Pending {
		if p.NodeID == node {
			if _, err := s.engine.SubmitActivity(context.Background(), graph.SubmitRequest{
				ExecutionID: id, NodeID: node, IdempotencyKey: p.IdempotencyKey, OK: true, Result: result,
			}); err != nil {
				s.Fatal(err)
			}
			return
		}
	}
	s.Fatalf("%s of %s is not pending", node, id)
}

// lock locks the database for everybody else until unlock is called.
func (s *site) lock() (unlock func()) {
	s.Helper()
	db, err := sql.Open("sqlite", s.db)
	if err != nil {
		s.Fatal(err)
	}
	conn, err := db.Conn(context.Background())
	if err == nil {
		_, err = conn.ExecContext(context.Background(), "BEGIN IMMEDIATE")
	}
	if err != nil {
		s.Fatal(err)
	}
	return func() {
		_, err := conn.ExecContext(context.Background(), "ROLLBACK")
		if err = errors.Join(err, conn.Close(), db.Close()); err != nil {
			s.Error(err)
		}
	}
}

// resume answers the only question of a run.
func (s *site) resume(id string, payload map[string]any) {
	s.Helper()
	ctx := graph.WithActor(context.Background(), history.Actor{Via: "cli", Name: "Robin"})
	if _, err := s.engine.Resume(ctx, graph.ResumeRequest{ExecutionID: id, Payload: payload}); err != nil {
		s.Fatal(err)
	}
}
