package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errUnable reports that a system does not offer what is measured.
var errUnable = errors.New("not offered")

type bench struct {
	url, only    string
	delay        time.Duration
	runs, rounds int
	idleFor      time.Duration
	databases    int
	folder       string
	relay        string // the address that delays; "" without one
}

func (b *bench) all(ctx context.Context, systems []string) (err error) {
	if b.folder, err = os.MkdirTemp("", "peers"); err != nil {
		return err
	}
	defer os.RemoveAll(b.folder)
	if b.delay > 0 {
		if err := b.listen(ctx); err != nil {
			return err
		}
	}
	measures := []struct {
		name string
		of   func(context.Context, string, system) (string, error)
	}{
		{"one step, 1 worker", b.backlog(1)}, {"one step, 4 workers", b.backlog(4)}, {"50 runs of 40 steps", b.stepping(50, 40)},
		{"1 run of 40 steps", b.stepping(1, 40)}, {"starts, one by one", b.starting(false)}, {"starts, in batches", b.starting(true)},
		{"idle to begun", b.latency}, {"150 starts a second, 4 workers", b.rate}, {"4 idle workers", b.idle},
		{"2 machines", b.machines}, {"submit", b.submits},
	}
	for round := range b.rounds {
		for _, m := range measures {
			if !strings.Contains(m.name, b.only) {
				continue
			}
			for _, name := range systems {
				raw, err := b.raw(ctx)
				if err != nil {
					return err
				}
				text, err := m.of(ctx, name, systemsByName[name])
				if errors.Is(err, errUnable) {
					text, err = "-", nil
				}
				if err != nil {
					return fmt.Errorf("%s, %s: %w", m.name, name, err)
				}
				fmt.Printf("round %d | %-30s | %-7s | %s | raw %s\n", round+1, m.name, name, text, raw)
			}
		}
	}
	return nil
}

// listen starts the relay.
func (b *bench) listen(ctx context.Context) error {
	c, err := pgx.ParseConfig(b.url)
	if err != nil {
		return err
	}
	network, address := pgconn.NetworkAddress(c.Host, c.Port)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	b.relay = l.Addr().String()
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial(network, address)
			if err != nil {
				client.Close()
				continue
			}
			go relay(server, client, b.delay)
			go relay(client, server, b.delay)
		}
	}()
	return nil
}

// relay copies bytes and delivers each part a delay after it has come.
func relay(to, from net.Conn, delay time.Duration) {
	type part struct {
		due  time.Time
		data []byte
	}
	parts := make(chan part, 1<<12)
	go func() {
		defer close(parts)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if n > 0 {
				parts <- part{time.Now().Add(delay), data[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range parts {
		pause(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	to.Close()
	from.Close()
}

// pause sleeps for less than a millisecond too: time.Sleep rounds up to one while the program is idle.
func pause(d time.Duration) {
	if d <= 0 {
		return
	}
	left := syscall.NsecToTimespec(int64(d))
	for syscall.Nanosleep(&left, &left) == syscall.EINTR {
	}
}

// database creates a database, and returns its address and a function that drops it. SQLite gets the path of a file.
func (b *bench) database(ctx context.Context, system string) (url string, drop func(), err error) {
	b.databases++
	name := "peers_" + strconv.Itoa(os.Getpid()) + "_" + strconv.Itoa(b.databases)
	if system == "sqlite" {
		path := filepath.Join(b.folder, name+".db")
		return path, func() { os.Remove(path) }, nil
	}
	admin, err := pgx.Connect(ctx, b.url)
	if err != nil {
		return "", nil, err
	}
	if _, err := admin.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		admin.Close(ctx)
		return "", nil, err
	}
	c := admin.Config()
	host, port := c.Host, strconv.Itoa(int(c.Port))
	if b.relay != "" {
		host, port, _ = net.SplitHostPort(b.relay)
	}
	url = fmt.Sprintf("host=%s port=%s user=%s dbname=%s sslmode=disable", host, port, c.User, name)
	if c.Password != "" {
		url += " password='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(c.Password) + "'"
	}
	return url, func() {
		admin.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
		admin.Close(ctx)
	}, nil
}

// raw measures commits of a row of 1.2 kB for a second, over one connection and over four.
func (b *bench) raw(ctx context.Context) (string, error) {
	url, drop, err := b.database(ctx, "raw")
	if err != nil {
		return "", err
	}
	defer drop()
	pool, err := pgxpool.New(ctx, url+" pool_max_conns=4")
	if err != nil {
		return "", err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, "CREATE TABLE t (id bigserial PRIMARY KEY, v text)"); err != nil {
		return "", err
	}
	text := strings.Repeat("x", 1200)
	var rates []string
	for _, connections := range []int{1, 4} {
		var n [4]int
		var done sync.WaitGroup
		until := time.Now().Add(time.Second)
		for i := range connections {
			done.Go(func() {
				for time.Now().Before(until) {
					if _, err := pool.Exec(ctx, "INSERT INTO t (v) VALUES ($1)", text); err == nil {
						n[i]++
					}
				}
			})
		}
		done.Wait()
		rates = append(rates, strconv.Itoa(n[0]+n[1]+n[2]+n[3]))
	}
	return strings.Join(rates, ", ") + "/s", nil
}

// worker is a process that performs runs.
type worker struct {
	cmd *exec.Cmd
}

// workers starts processes that perform, and waits until they are ready. steps receives the time of each step's beginning.
func (b *bench) workers(ctx context.Context, name, url string, n int, steps chan<- time.Time) (list []worker, stop func(), err error) {
	var ready sync.WaitGroup
	stop = func() {
		for _, w := range list {
			w.cmd.Process.Signal(os.Interrupt)
		}
		for _, w := range list {
			kill := time.AfterFunc(20*time.Second, func() { w.cmd.Process.Kill() })
			w.cmd.Wait()
			kill.Stop()
		}
	}
	for range n {
		cmd := exec.CommandContext(ctx, os.Args[0], "-perform", name, "-url", url)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			stop()
			return nil, nil, err
		}
		list = append(list, worker{cmd})
		ready.Add(1)
		go func() {
			once := sync.OnceFunc(ready.Done)
			defer once() // also if the process ends
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				if lines.Text() == "ready" {
					once()
				} else if lines.Text() == "step" {
					steps <- time.Now()
				}
			}
			io.Copy(io.Discard, out)
		}()
	}
	ready.Wait()
	return list, stop, nil
}

// take waits for a number of steps.
func take(ctx context.Context, steps <-chan time.Time, n int) ([]time.Time, error) {
	var times []time.Time
	for len(times) < n {
		select {
		case at := <-steps:
			times = append(times, at)
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Minute):
			return nil, fmt.Errorf("%d of %d steps have begun", len(times), n)
		}
	}
	return times, nil
}
