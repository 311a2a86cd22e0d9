package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a server for tests.
type Server struct {
	url    string
	bin    string // the folder of its programs, "" for a server that the variable names
	dir    string
	flags  []string
	own    *syscall.SysProcAttr
	mu     sync.Mutex
	server *exec.Cmd
	watch  io.Closer // its end ends the server
}

// errMissing reports that there are no programs of a server.
var errMissing = errors.New("no PostgreSQL found (install the package postgresql, or set WORKFLOW_ENGINE_TEST_PG)")

var shared = sync.OnceValues(func() (*Server, error) {
	if url := os.Getenv("WORKFLOW_ENGINE_TEST_PG"); url != "" {
		return &Server{url: url}, nil
	}
	return start("-c", "fsync=off")
})

// Shared returns the server that all tests of the binary share. It ends with the binary. It never flushes: tests of what a crash of the machine leaves,
// and measurements, need a server of their own.
func Shared(t testing.TB) *Server {
	t.Helper()
	s, err := shared()
	check(t, err)
	return s
}

// New starts a server for one test, which may stop it; flags are those of the program postgres, such as "-c", "max_connections=20".
func New(t testing.TB, flags ...string) *Server {
	t.Helper()
	s, err := start(flags...)
	check(t, err)
	t.Cleanup(s.end)
	return s
}

func check(t testing.TB, err error) {
	t.Helper()
	switch {
	case errors.Is(err, errMissing) && os.Getenv("CI") == "":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
}

// URL returns where the server is, for a user with all rights.
func (s *Server) URL() string { return s.url }

// Schema returns the name of a new schema. Nothing is created; a schema on a server that is not the test's own is dropped when the test ends.
func Schema(t testing.TB) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text())
	if s, err := shared(); err == nil && s.bin == "" {
		t.Cleanup(func() { s.Exec(t, fmt.Sprintf(`DROP SCHEMA IF EXISTS %s CASCADE`, name)) })
	}
	return name
}

// Exec runs statements on the server.
func (s *Server) Exec(t testing.TB, sql string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	c, err := pgx.Connect(ctx, s.url)
	if err == nil {
		_, err = c.PgConn().Exec(ctx, sql).ReadAll()
		err = errors.Join(err, c.Close(ctx))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// programs returns the folder of the programs initdb and postgres.
func programs() (string, error) {
	var folders []string
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil { // the other programs are beside the file, not the link
			path = real
		}
		folders = append(folders, filepath.Dir(path))
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		folders = append(folders, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin"} {
		found, _ := filepath.Glob(pattern) // the pattern is valid
		slices.Sort(found)
		slices.Reverse(found)
		folders = append(folders, found...)
	}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "initdb")); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(folder, "postgres")); err == nil {
			return folder, nil
		}
	}
	return "", errMissing
}

// start makes a database and starts its server.
func start(flags ...string) (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(folder(), "pg") // short: the path of a socket has at most 107 bytes
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, flags: flags, url: "host=" + dir + " user=test dbname=postgres"}
	if err := s.begin(); err != nil {
		s.end()
		return nil, fmt.Errorf("PostgreSQL did not start: %w", err)
	}
	return s, nil
}

func (s *Server) begin() error {
	if err := s.becomeUser(); err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	initdb := exec.Command(filepath.Join(s.bin, "initdb"), "-D", data, "--auth=trust", "--locale=C", "-E", "UTF8", "-U", "test", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = s.dir, s.own
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return s.launch()
}

// launch starts the server, and a child that stops it and removes the folder when this process ends.
func (s *Server) launch() error {
	args := []string{"-D", filepath.Join(s.dir, "data"), "-c", "listen_addresses=", "-c", "unix_socket_directories=" + s.dir, "-c", "max_connections=300",
		"-c", "autovacuum_naptime=1min", "-c", "log_min_messages=fatal"}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	server := exec.Command(filepath.Join(s.bin, "postgres"), append(args, s.flags...)...)
	server.Dir, server.SysProcAttr, server.Stdout, server.Stderr = s.dir, s.own, log, log
	if err := server.Start(); err != nil {
		return err
	}
	s.server = server
	watch, err := watcher(server.Process.Pid, s.dir)
	if err != nil {
		return err
	}
	s.watch = watch
	ctx, done := context.WithTimeout(context.Background(), 30*time.Second)
	defer done()
	for {
		c, err := pgx.Connect(ctx, s.url)
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(log.Name()) // what it says helps, if it can be read
			return fmt.Errorf("%w\n%s", err, text)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Stop stops the server: at once, as in a crash, if hard, else after it has ended its connections.
func (s *Server) Stop(t testing.TB, hard bool) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	signal := os.Signal(syscall.SIGINT)
	if hard {
		signal = syscall.SIGQUIT
	}
	if s.server == nil {
		t.Fatal("the server does not run")
	}
	if err := s.server.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	_ = s.server.Wait() // it ends with an error after a signal
	s.server = nil
}

// Start starts the server again.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.relaunch(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) relaunch() error {
	old := s.watch
	if err := s.launch(); err != nil {
		return err
	}
	if w, ok := old.(*watching); ok {
		return w.dismiss()
	}
	return nil
}

// end stops the server and removes its folder.
func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		_ = s.server.Process.Signal(syscall.SIGQUIT)
		_ = s.server.Wait()
		s.server = nil
	}
	if s.watch != nil {
		_ = s.watch.Close()
	}
	_ = os.RemoveAll(s.dir)
}
