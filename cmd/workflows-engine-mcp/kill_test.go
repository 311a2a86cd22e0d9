package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/cli"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// The SIGKILL loop. Two servers share one file; several hosts drive runs, each call through either server. At random moments,
// mostly during a call, one server is killed, and started again for the next call. A host without an answer repeats its call.
// In the end every run has completed, and every outcome that was answered is in the histories, once. One run of five is an agent's, whose
// endpoint is outside of the servers; see TestAgentsAreKilled.
//
// The short form kills a few times, `make soak` thousands of times; SOAK_KILLS sets how often.

func TestKillLoop(t *testing.T) {
	t.Parallel()
	kills := soak.Setting("SOAK_KILLS", soak.Size(8, 4, 2000))
	w := newWitness(t)
	arena := clerks(t, w)
	arena.wanted = int64(kills)
	const hosts = 4

	var tickets, naps, agents []string
	var mu sync.Mutex
	results := map[string]object{}
	var work sync.WaitGroup
	for host := range hosts {
		work.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(host), 3))
			for n := 0; (n < 2 || arena.killed.Load() < arena.wanted) && !t.Failed(); n++ { // the second run is an agent's
				id := fmt.Sprintf("run-%d-%d", host, n)
				if n%5 == 4 {
					arena.call(rng, "workflow_start", object{"execution_id": id, "wait_ms": 0, "allow_existing_execution_id": true, "definition": json.RawMessage(nap(30 * time.Millisecond))})
					mu.Lock()
					naps = append(naps, id)
					mu.Unlock()
					continue
				}
				if n%5 == 1 {
					arena.clerk(rng, id)
					mu.Lock()
					agents = append(agents, id)
					mu.Unlock()
					continue
				}
				last := arena.ticket(rng, id)
				mu.Lock()
				tickets = append(tickets, id)
				results[id] = last
				mu.Unlock()
			}
		})
	}
	work.Wait()
	if t.Failed() {
		return
	}
	// The naps end by themselves, whichever server set their timers.
	rng := rand.New(rand.NewPCG(9, 9))
	arena.wanted = 0
	for _, id := range naps {
		for try := 0; ; try++ {
			got, _ := arena.call(rng, "workflow_status", object{"execution_id": id, "wait_ms": 5000})
			if got["phase"] == "completed" {
				break
			}
			if try > 20 {
				t.Fatalf("%s did not end: %v", id, got)
			}
		}
	}
	for i := 0; i < len(arena.probes); i++ { // a server that the last kill ended is started again, and adds one
		arena.clerk(rng, arena.probes[i])
	}
	for _, s := range arena.seats {
		s.end()
	}
	store := checkFile(t, arena.db)
	w.check(t, store, hosts, int(arena.killed.Load()))
	for _, id := range tickets {
		checkTicketIn(t, store, id, results[id])
	}
	t.Logf("%d kills, %d calls, %d of them made again, %d runs, %d of agents", arena.killed.Load(), arena.calls.Load(), arena.repeated.Load(), len(tickets)+len(naps)+len(agents), len(agents))
	if len(tickets) < kills/8 || len(agents) == 0 || arena.repeated.Load() < int64(kills)/4 {
		t.Errorf("the loop exercises too little: %d runs, %d repeated calls", len(tickets), arena.repeated.Load())
	}
}

// verifyFile checks the file as `integrity_check` and `workflows-engine db verify` do.
func verifyFile(t *testing.T, db string) {
	t.Helper()
	var verdict string
	if err := script(t, db).QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Fatalf("integrity_check: %s, %v", verdict, err)
	}
	var findings bytes.Buffer
	if status := cli.Main(t.Context(), []string{"verify", "--store-path", db}, nil, &findings, &findings); status != 0 {
		t.Errorf("verify: status %d\n%s", status, findings.String())
	}
}

// checkFile checks the whole file: it is sound, no run has a gap, and each projection agrees with its history. It returns the
// opened store.
func checkFile(t *testing.T, db string) history.Store {
	t.Helper()
	verifyFile(t, db)
	ctx := context.Background()
	store, err := historysql.Open(ctx, db, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	for q := (history.ListQuery{Limit: 100}); ; {
		page, err := store.List(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Executions {
			rs, err := store.Read(ctx, e.ID, 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			ends := 0
			for i, r := range rs {
				if r.Seq != int64(i+1) {
					t.Fatalf("%s: record %d has seq %d", e.ID, i+1, r.Seq)
				}
				if r.Name.Terminal() {
					ends++
				}
			}
			want := history.Project(e.ID, rs)
			if ends != 1 || string(e.AppendText(nil)) != string(want.AppendText(nil)) {
				t.Errorf("%s: %d ends, the projection is\n%s\nthe records fold to\n%s", e.ID, ends, e.AppendText(nil), want.AppendText(nil))
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return store
		}
	}
}

// arena holds the servers that are killed.
type arena struct {
	t                       *testing.T
	seats                   []*seat
	wanted                  int64
	killed, calls, repeated atomic.Int64

	// db and store are the file, where servers perform something themselves: the lease of a killed one ends at once instead of half a
	// minute later, as no other process can tell. To learn its name each server is given a run of its own, a probe.
	db     string
	store  history.Store
	mu     sync.Mutex
	probes []string
}

// ticket drives a run through the steps of a ticket and returns the last answer.
func (a *arena) ticket(rng *rand.Rand, id string) (last object) {
	for _, s := range ticketSteps(a.t, id) {
		got, isError := a.call(rng, s.tool, s.args)
		if isError || got["status"] != s.status {
			a.t.Errorf("%s %s: %v, want %s", id, s.tool, got, s.status)
			return got
		}
		last = got
	}
	return last
}

// call makes a call through any server, and repeats it until it is answered.
func (a *arena) call(rng *rand.Rand, tool string, args object) (answer object, isError bool) {
	for try := 0; ; try++ {
		a.calls.Add(1)
		var after time.Duration = -1
		if rng.IntN(5) == 0 && a.killed.Load() < a.wanted {
			after = time.Duration(rng.IntN(3000)) * time.Microsecond
		}
		answer, isError, err := a.seats[rng.IntN(len(a.seats))].call(tool, args, after)
		if err == nil {
			return answer, isError
		}
		a.repeated.Add(1)
		if try > 200 {
			a.t.Errorf("%s: no answer: %v", tool, err)
			return object{}, true
		}
	}
}

// seat is a server that is started again with the next call after it was killed. It takes one call at a time.
type seat struct {
	arena *arena
	make  func() *exec.Cmd

	// live is the process once its name is known, until it is killed from outside.
	live atomic.Pointer[os.Process]

	mu sync.Mutex
	// name is that of the process in leases, "" if it is not known.
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	calls int
}

func (s *seat) start() error {
	cmd := s.make()
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd, s.in, s.out, s.calls = cmd, in, bufio.NewReaderSize(out, 1<<16), 0
	_, err = io.WriteString(in, hello+"\n")
	if err == nil {
		_, err = s.out.ReadBytes('\n')
	}
	if err == nil && s.arena.store != nil {
		err = s.probe()
		s.live.Store(cmd.Process)
	}
	return err
}

// probe learns the name of the process: a run that nobody else knows is its.
func (s *seat) probe() error {
	a := s.arena
	a.mu.Lock()
	id := fmt.Sprint("probe-", len(a.probes))
	a.probes = append(a.probes, id)
	a.mu.Unlock()
	if _, _, err := s.send("workflow_start", startClerk(id, "PROBE"), -1); err != nil {
		return err
	}
	owner, err := a.store.Owner(context.Background(), id)
	s.name = owner.Process
	return err
}

// call makes a call; with killAfter from 0 on, the server is killed that long after the call was sent.
func (s *seat) call(tool string, args object, killAfter time.Duration) (answer object, isError bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if err != nil {
			s.clear()
		}
	}()
	if s.cmd == nil {
		if err := s.start(); err != nil {
			return nil, false, err
		}
	}
	return s.send(tool, args, killAfter)
}

// send makes a call of the process that runs.
func (s *seat) send(tool string, args object, killAfter time.Duration) (answer object, isError bool, err error) {
	text, err := json.Marshal(args)
	if err != nil {
		return nil, false, err
	}
	s.calls++
	if _, err := io.WriteString(s.in, toolCall(s.calls, tool, string(text))+"\n"); err != nil {
		return nil, false, err
	}
	if killAfter >= 0 {
		process := s.cmd.Process
		time.AfterFunc(killAfter, func() {
			if process.Kill() == nil {
				s.arena.killed.Add(1)
			}
		})
	}
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		return nil, false, err
	}
	var message struct {
		Result struct {
			Structured object `json:"structuredContent"`
			IsError    bool   `json:"isError"`
		} `json:"result"`
	}
	if err := json.Unmarshal(line, &message); err != nil || message.Result.Structured == nil {
		s.arena.t.Errorf("answered %s", line)
	}
	return message.Result.Structured, message.Result.IsError, nil
}

func (s *seat) clear() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.cmd = nil
		s.live.Store(nil)
		if s.name != "" {
			if err := s.arena.store.Release(context.Background(), s.name); err != nil {
				s.arena.t.Errorf("the lease of a process that was killed: %v", err)
			}
			s.name = ""
		}
	}
}

func (s *seat) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
}
