package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// TestCrowd lets many clients of several servers work on one file at once: each drives runs of its own, and all race for
// every step of shared runs. No call fails because the file is busy, no outcome is lost or recorded twice, and
// the test logs how long the calls of each server took. In `make soak` 8 servers have 50 clients each, for a minute or
// SOAK_SECONDS.
func TestCrowd(t *testing.T) {
	t.Parallel()
	servers, clients, rounds, limit := soak.Size(3, 3, 8), soak.Size(6, 3, 50), soak.Size(2, 1, 1<<30), time.Duration(0)
	if soak.On() {
		limit = time.Duration(soak.Setting("SOAK_SECONDS", 60)) * time.Second
	}
	db := database(t)
	crowd := make([]*line, servers)
	for i := range crowd {
		crowd[i] = openLine(t, db)
	}
	var mu sync.Mutex
	results := map[string]object{}
	began := time.Now()
	var working sync.WaitGroup
	for i, l := range crowd {
		for c := range clients {
			working.Go(func() {
				for n := 0; n < rounds && !t.Failed() && (limit == 0 || time.Since(began) < limit); n++ {
					id := fmt.Sprintf("own-%d-%d-%d", i, c, n)
					last := crowdTicket(t, l, id, false)
					// The clients of the same number, one of each server, share a run.
					shared := fmt.Sprintf("shared-%d-%d", c, n)
					crowdTicket(t, l, shared, true)
					mu.Lock()
					results[id] = last
					results[shared] = object{"result": sharedResult}
					mu.Unlock()
				}
			})
		}
	}
	working.Wait()
	took := time.Since(began)
	total := 0
	for i, l := range crowd {
		l.end()
		slices.Sort(l.times)
		at := func(share float64) time.Duration {
			return l.times[int(share*float64(len(l.times)-1))].Round(time.Millisecond)
		}
		total += len(l.times)
		t.Logf("server %d: %d calls, p50 %v, p99 %v, max %v", i, len(l.times), at(0.5), at(0.99), at(1))
	}
	t.Logf("%d servers with %d clients each: %d calls in %v, %d runs", servers, clients, total, took.Round(time.Millisecond), len(results))
	if t.Failed() {
		return
	}
	store := checkFile(t, db)
	for id, last := range results {
		checkTicketIn(t, store, id, last)
	}
}

var sharedResult = object{"id": "T-1", "intent": "refund", "log": []any{"classified", "opened"}}

// crowdTicket drives a run through the steps of a ticket. In a shared run other clients do the same; a step that another has
// done is answered as if this client had done it.
func crowdTicket(t *testing.T, l *line, id string, shared bool) (last object) {
	for _, s := range ticketSteps(t, id) {
		got, isError, err := l.call(s.tool, s.args)
		switch {
		case err != nil:
			t.Errorf("%s %s: %v", id, s.tool, err)
			return nil
		case isError || !shared && got["status"] != s.status:
			t.Errorf("%s %s: %v, want %s", id, s.tool, got, s.status)
			return got
		}
		last = got
	}
	return last
}

// line is a connection to a server that many clients use at once.
type line struct {
	t    *testing.T
	done chan struct{}
	kill func()

	mu      sync.Mutex
	in      io.WriteCloser
	next    int
	waiting map[int]chan []byte
	times   []time.Duration
}

func openLine(t *testing.T, db string) *line {
	t.Helper()
	cmd := command(t, "--store-path", db)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := new(tail)
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l := &line{t: t, in: in, waiting: map[int]chan []byte{}, done: make(chan struct{})}
	l.kill = func() {
		cmd.Process.Kill()
		cmd.Wait()
	}
	t.Cleanup(l.kill)
	go func() {
		defer close(l.done)
		for lines := bufio.NewReaderSize(out, 1<<16); ; {
			text, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var head struct {
				ID int `json:"id"`
			}
			if json.Unmarshal(text, &head) == nil {
				l.mu.Lock()
				answer := l.waiting[head.ID]
				delete(l.waiting, head.ID)
				l.mu.Unlock()
				if answer != nil {
					answer <- text
				}
			}
		}
	}()
	if _, err := io.WriteString(in, hello+"\n"); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	return l
}

func (l *line) call(tool string, args object) (answer object, isError bool, err error) {
	text, err := json.Marshal(args)
	if err != nil {
		return nil, false, err
	}
	came := make(chan []byte, 1)
	began := time.Now()
	l.mu.Lock()
	l.next++
	l.waiting[l.next] = came
	_, err = io.WriteString(l.in, toolCall(l.next, tool, string(text))+"\n")
	l.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	var message struct {
		Result struct {
			Structured object `json:"structuredContent"`
			IsError    bool   `json:"isError"`
		} `json:"result"`
	}
	select {
	case text := <-came:
		err = json.Unmarshal(text, &message)
	case <-l.done:
		err = errors.New("the server has ended")
	}
	l.mu.Lock()
	l.times = append(l.times, time.Since(began))
	l.mu.Unlock()
	return message.Result.Structured, message.Result.IsError, err
}

// end closes the connection and waits for the server to end.
func (l *line) end() {
	l.in.Close()
	select {
	case <-l.done:
	case <-time.After(patience):
		l.t.Error("the server does not end")
	}
	l.kill()
}
