package historypg_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// line is a connection to the server that breaks on demand.
type line struct {
	t    *testing.T
	url  string
	to   string
	fail atomic.Int32
}

// The ways a line breaks, once.
const (
	works       = iota
	loseAnswer  // the server gets what is sent and answers, and nobody hears it
	loseRequest // the server gets nothing
)

// newLine listens on a socket and passes everything on to the server.
func newLine(t *testing.T) *line {
	t.Helper()
	settings := map[string]string{}
	for _, s := range strings.Fields(pgtest.Shared(t).URL()) {
		name, value, _ := strings.Cut(s, "=")
		settings[name] = value
	}
	if !strings.HasPrefix(settings["host"], "/") {
		t.Skip("the server is not on a socket")
	}
	dir, err := os.MkdirTemp("", "line")
	if err != nil {
		t.Fatal(err)
	}
	const socket = ".s.PGSQL.5432"
	listener, err := net.Listen("unix", filepath.Join(dir, socket))
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		open.Wait()
		_ = os.RemoveAll(dir)
	})
	l := &line{t: t, url: "host=" + dir + " user=test dbname=postgres", to: filepath.Join(settings["host"], socket)}
	open.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() { l.pass(c) })
		}
	})
	return l
}

// pass passes on what a client and the server say.
func (l *line) pass(client net.Conn) {
	server, err := net.Dial("unix", l.to)
	if err != nil {
		_ = client.Close()
		return
	}
	broken := func() { _, _ = client.Close(), server.Close() }
	var answers sync.WaitGroup
	answers.Go(func() {
		defer broken()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if err != nil {
				return
			}
			if l.fail.Load() == loseAnswer {
				if bytes.Contains(buffer[:n], []byte("Z\x00\x00\x00\x05")) { // ready for the next query: it has committed
					l.fail.Store(works)
					return
				}
				continue
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil || l.fail.CompareAndSwap(loseRequest, works) {
			break
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			break
		}
	}
	broken()
	answers.Wait()
}

// TestLostConnections: what was certainly not done is done again; what may have been done is STORE_OUTCOME_UNKNOWN, unless doing it twice does no harm.
func TestLostConnections(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	s := openAt(t, l.url, historypg.Options{Schema: emptySchema(t), Conns: 1})
	ctx := t.Context()
	x := historytest.NewTrace(t, "x")
	x.Append(s, "E ExecutionStarted")
	x.Append(s, "C ScheduleNode a")
	if err := s.Renew(ctx, "p", time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fail int32
		done bool
	}{{loseAnswer, true}, {loseRequest, false}} {
		before := x.Execution.Seq
		b := x.Batch("C ScheduleNode b")
		l.fail.Store(c.fail)
		if err := s.Append(ctx, b); !errors.Is(err, problem.StoreOutcomeUnknown) {
			t.Errorf("append: %v", err)
		}
		e, err := s.Execution(ctx, "x")
		if done := e.Seq > before; err != nil || done != c.done {
			t.Errorf("the run is at %d, was at %d, %v", e.Seq, before, err)
		}
		x.Execution = e
		l.fail.Store(c.fail)
		if err := s.Renew(ctx, "p", time.Minute); err != nil {
			t.Errorf("a renewal, which can be repeated: %v", err)
		}
		l.fail.Store(c.fail)
		if rs, err := s.Read(ctx, "x", 1, 0); err != nil || int64(len(rs)) != e.Seq {
			t.Errorf("a read: %d records, %v", len(rs), err)
		}
		l.fail.Store(c.fail)
		if _, err := s.Grant(ctx, "p", history.Want{Class: "c", Slots: 1}); err != nil && !errors.Is(err, problem.StoreOutcomeUnknown) {
			t.Errorf("a grant: %v", err)
		}
		l.fail.Store(works)
		x.Append(s, "C ScheduleNode c")
	}
}

// TestAServerThatComesAndGoes: without a server every call is STORE_UNAVAILABLE, and goes on with the next one. What was reported as stored is stored,
// once, however the server ended.
func TestAServerThatComesAndGoes(t *testing.T) {
	t.Parallel()
	const writers, rounds = 4, 60
	server := pgtest.New(t)
	s := openAt(t, server.URL(), historypg.Options{})
	ctx := t.Context()
	unknown, failed := atomic.Int32{}, atomic.Int32{}
	progress := make(chan struct{}, writers*rounds)
	append := func(x *historytest.Trace, node string) error {
		for try := 0; ; try++ {
			before := *x
			err := s.Append(ctx, x.Batch("C ScheduleNode "+node, "E NodeScheduled "+node))
			if err == nil {
				return nil
			}
			if try > 2000 {
				return err
			}
			*x = before
			switch {
			case errors.Is(err, problem.StoreOutcomeUnknown):
				unknown.Add(1)
				var e history.Execution
				for e, err = s.Execution(ctx, x.Execution.ID); err != nil && !errors.Is(err, problem.ExecutionNotFound) && try < 2000; try++ {
					e, err = s.Execution(ctx, x.Execution.ID)
				}
				if e.Seq > x.Execution.Seq {
					x.Execution = e
					return nil
				}
			case errors.Is(err, problem.StoreUnavailable):
				failed.Add(1)
			default:
				return err
			}
		}
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			x := historytest.NewTrace(t, fmt.Sprint("r", w))
			for round := range rounds {
				if err := append(x, fmt.Sprint("n", round)); err != nil {
					t.Error(err)
					return
				}
				progress <- struct{}{}
			}
		})
	}
	for i := range 3 {
		for range writers * rounds / 4 {
			<-progress
		}
		server.Stop(t, i%2 == 0)
		if i == 0 {
			if _, err := s.Execution(ctx, "r0"); !errors.Is(err, problem.StoreUnavailable) {
				t.Errorf("a read without a server: %v", err)
			}
			if err := s.Renew(ctx, "p", time.Minute); !errors.Is(err, problem.StoreUnavailable) && !errors.Is(err, problem.StoreOutcomeUnknown) {
				t.Errorf("a renewal without a server: %v", err)
			}
		}
		server.Start(t)
	}
	wg.Wait()
	for w := range writers {
		rs, err := s.Read(ctx, fmt.Sprint("r", w), 1, 0)
		if err != nil || len(rs) != 2*rounds {
			t.Fatalf("run %d has %d records, %v", w, len(rs), err)
		}
		for i, r := range rs {
			if want := fmt.Sprint("n", i/2); r.Payload.NodeID != want {
				t.Fatalf("record %d of run %d is of %s, want %s", i+1, w, r.Payload.NodeID, want)
			}
		}
	}
	if _, err := s.Verify(ctx, "", false, func(f history.Finding) { t.Errorf("found %+v", f) }); err != nil {
		t.Error(err)
	}
	t.Logf("%d calls without a known outcome, %d failed", unknown.Load(), failed.Load())
}

// TestAWatchOutlivesItsConnection: a watch hears of runs again after its connection was ended.
func TestAWatchOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	schema := emptySchema(t)
	server := pgtest.Shared(t)
	watching := openWith(t, historypg.Options{Schema: schema, Version: schema})
	s := openWith(t, historypg.Options{Schema: schema})
	heard := make(chan string, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watching.Watch(ctx, func(id string, _ int64) { heard <- id }) }()
	hear := func(prefix string) {
		t.Helper()
		deadline := time.After(20 * time.Second)
		for n := 0; ; n++ {
			historytest.NewTrace(t, fmt.Sprint(prefix, n)).Append(s, "E ExecutionStarted")
			select {
			case id := <-heard:
				if strings.HasPrefix(id, prefix) {
					return
				}
			case <-time.After(100 * time.Millisecond):
			case <-deadline:
				t.Fatal("not heard")
			}
		}
	}
	hear("before")
	server.Exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND application_name = 'workflows-engine/"+schema+"'")
	hear("after")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestStepsOfAnOwnerNotifyNobody: commits that notify wait for each other, so the steps of a run in the hands of its owner do not.
func TestStepsOfAnOwnerNotifyNobody(t *testing.T) {
	t.Parallel()
	s := openWith(t, historypg.Options{})
	heard := make(chan int64, 1000)
	go func() { _ = s.Watch(t.Context(), func(id string, seq int64) { heard <- seq }) }()
	x := historytest.NewTrace(t, "x")
	for listening := false; !listening; {
		x.Append(s, "E ExecutionStarted")
		select {
		case <-heard:
			listening = true
		case <-time.After(50 * time.Millisecond):
		}
	}
	x = historytest.NewTrace(t, "y")
	own := func(lines ...string) {
		t.Helper()
		b := x.Batch(lines...)
		b.Owner = "p"
		if err := s.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	own(historytest.Start("w", "in_process")...)
	own("C ScheduleNode a", "E NodeScheduled a", `E ActivityRequested a {"nodeType":"step","attempt":1}`)
	own(`E ActivityCompleted a {"nodeType":"step","result":{}}`, `C CompleteNode a {"output":{}}`, "C ScheduleNode b", `E ActivityRequested b {"nodeType":"step","attempt":1}`)
	own(`E ActivityCompleted b {"nodeType":"step","result":{}}`, "E ExecutionCompleted")
	for seq := range heard {
		if seq == x.Execution.Seq {
			return // the end
		}
		if seq > 1 {
			t.Fatalf("heard of record %d", seq)
		}
	}
}

// TestErrorsHoldNoSecrets: no error of a connection has the user, the password or another text of the URL but the host.
func TestErrorsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	const user, password, option = "sentinel_user", "sentinel_password", "sentinel_option"
	dir := strings.TrimPrefix(strings.Fields(pgtest.Shared(t).URL())[0], "host=")
	none := filepath.Join(t.TempDir(), "nowhere")
	for name, url := range map[string]string{
		"no server":       fmt.Sprintf("host=%s user=%s password=%s dbname=d", none, user, password),
		"an unknown role": fmt.Sprintf("host=%s user=%s password=%s dbname=postgres", dir, user, password),
		"no database":     fmt.Sprintf("host=%s user=test password=%s dbname=%s", dir, password, option),
		"an unknown one":  fmt.Sprintf("host=%s user=test password=%s dbname=postgres %s=1", dir, password, option),
		"no standby":      fmt.Sprintf("host=%s user=test password=%s dbname=postgres target_session_attrs=standby", dir, password),
		"a bad setting":   fmt.Sprintf("host=%s user=test password=%s dbname=postgres lock_timeout=%s", dir, password, option),
		"a bad url":       fmt.Sprintf("postgres://%s:%s@h:port/d", user, password),
		"no url":          fmt.Sprintf("postgres://%s:%s@h\x7f/d", user, password),
		"a bad sslmode":   fmt.Sprintf("postgres://%s:%s@h/d?sslmode=%s", user, password, option),
		"a closed port":   fmt.Sprintf("postgres://%s:%s@127.0.0.1:1/d?sslmode=disable", user, password),
		"a missing file":  fmt.Sprintf("postgres://%s:%s@h/d?sslmode=verify-full&sslrootcert=/%s", user, password, option),
	} {
		for what, call := range map[string]func() error{
			"Open":    func() error { _, err := historypg.Open(t.Context(), url, historypg.Options{}); return err },
			"Inspect": func() error { _, err := historypg.Inspect(t.Context(), url, historypg.Options{}); return err },
		} {
			err := call()
			if err == nil {
				t.Errorf("%s: %s succeeds", name, what)
				continue
			}
			e, ok := problem.As(err)
			if !ok || e.Code != problem.StoreUnavailable && e.Code != problem.UsageError || e.Hint == "" {
				t.Errorf("%s: %s: %v (%+v)", name, what, err, e)
			}
			for current := err; current != nil; current = errors.Unwrap(current) {
				text := fmt.Sprintf("%v %+v %#v", current, current, current)
				for _, secret := range []string{user, password, option} {
					if strings.Contains(text, secret) {
						t.Errorf("%s: %s shows %s: %s", name, what, secret, text)
					}
				}
			}
		}
	}
	s := openAt(t, fmt.Sprintf("host=%s user=test password=%s dbname=postgres", dir, password), historypg.Options{Schema: emptySchema(t)})
	if w := s.Where(); strings.Contains(fmt.Sprintf("%v %+v", w, w), password) || w.Host != dir || w.Database != "postgres" {
		t.Errorf("the store is at %+v", w)
	}
}

// TestReadersChooseAServer: a store that only reads finds the server that takes writes, as a writer with the same URL does, and writes
// nothing to it. A URL that leads to no such server is told from a server that does not answer.
func TestReadersChooseAServer(t *testing.T) {
	t.Parallel()
	schema := emptySchema(t)
	openWith(t, historypg.Options{Schema: schema})
	for _, kind := range []string{"read-write", "primary", "any", "prefer-standby"} {
		s := openAt(t, pgtest.Shared(t).URL()+" target_session_attrs="+kind, historypg.Options{Schema: schema, ReadOnly: true})
		if _, err := s.List(t.Context(), history.ListQuery{}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if setting, err := s.Setting(t.Context(), "default_transaction_read_only"); err != nil || setting != "on" {
			t.Errorf("%s: default_transaction_read_only is %q, %v", kind, setting, err)
		}
	}
	for _, kind := range []string{"read-only", "standby"} {
		for _, o := range []historypg.Options{{Schema: schema}, {Schema: schema, ReadOnly: true}} {
			_, err := historypg.Open(t.Context(), pgtest.Shared(t).URL()+" target_session_attrs="+kind, o)
			if !errors.Is(err, problem.StoreUnavailable) || !strings.Contains(err.Error(), "target_session_attrs") {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

// TestReadyRunsAreAnnounced: of runs that become ready one after another in a lane, the first is announced with its append, and the others soon after,
// together.
func TestReadyRunsAreAnnounced(t *testing.T) {
	t.Parallel()
	schema := emptySchema(t)
	s := openWith(t, historypg.Options{Schema: schema})
	ctx := t.Context()
	c, err := pgx.Connect(ctx, pgtest.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	if _, err := c.Exec(ctx, `LISTEN "`+schema+`_ready"`); err != nil {
		t.Fatal(err)
	}
	begin := func(id, lane string) {
		t.Helper()
		b := historytest.NewTrace(t, id).Batch(historytest.Start("w", "in_process")...)
		b.Ready = &history.Ready{Lane: history.ParseLane(lane)}
		if err := s.Append(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(most int) (n int) {
		t.Helper()
		for ; n < most; n++ {
			waiting, done := context.WithTimeout(ctx, 10*time.Second)
			_, err := c.WaitForNotification(waiting)
			done()
			if err != nil {
				t.Fatalf("%d notifications, %v", n, err)
			}
		}
		return n
	}
	begin("a", "default/step:a")
	hear(1)
	for i := range 50 {
		begin(fmt.Sprint("a", i), "default/step:a")
	}
	begin("b", "default/step:b")
	hear(2) // at least one of the others, and that of the other lane
}
