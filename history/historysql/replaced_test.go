package historysql_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

func ids(t *testing.T, s *historysql.Store) (out []string) {
	t.Helper()
	page, err := s.List(t.Context(), history.ListQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range page.Executions {
		out = append(out, page.Executions[i].ID)
	}
	slices.Sort(out)
	return out
}

func begin(t *testing.T, s *historysql.Store, id string) {
	t.Helper()
	if err := s.Append(t.Context(), firstRecord(id)); err != nil {
		t.Fatal(err)
	}
}

// A store whose file was deleted, or moved away, says so, and leaves alone what stands there then.
func TestAFileThatIsReplaced(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows keeps files that are open from being deleted and moved")
	}
	for name, away := range map[string]func(path string) error{
		"deleted": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".old") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "runs.db")
			old, err := historysql.Open(t.Context(), path, historysql.Options{})
			if err != nil {
				t.Fatal(err)
			}
			begin(t, old, "before")
			for _, suffix := range []string{"", "-wal", "-shm"} {
				if err := away(path + suffix); err != nil {
					t.Fatal(err)
				}
			}
			now := openFile(t, path, historysql.Options{})
			begin(t, now, "after")
			old.LookAgain()
			if err := old.Append(t.Context(), firstRecord("lost")); !errors.Is(err, problem.StoreReplaced) {
				t.Errorf("an append: %v", err)
			}
			if _, err := old.Execution(t.Context(), "before"); !errors.Is(err, problem.StoreReplaced) {
				t.Errorf("a look: %v", err)
			}
			if err := old.Close(); err != nil {
				t.Error(err)
			}
			begin(t, now, "later")
			if err := now.Close(); err != nil {
				t.Fatal(err)
			}
			if got := ids(t, openFile(t, path, historysql.Options{})); !slices.Equal(got, []string{"after", "later"}) {
				t.Errorf("the file holds %q", got)
			}
		})
	}
}

// A copy is put in the place of a file that another process, which somebody forgot, still has open.
func TestAFileThatIsRestored(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short leaves out what starts processes")
	}
	if runtime.GOOS == "windows" {
		t.Skip("Windows keeps files that are open from being replaced")
	}
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	begin(t, s, "kept")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	backup, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), holderFile+"="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	says := bufio.NewReader(out)
	if line, err := says.ReadString('\n'); err != nil || line != "holds <nil>\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := os.WriteFile(path, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil {
			t.Fatal(err)
		}
	}
	s = openFile(t, path, historysql.Options{})
	begin(t, s, "new")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	line, err := says.ReadString('\n')
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if err != nil || strings.TrimSpace(line) != "true <nil>" {
		t.Errorf("the other process says %q, %v", line, err)
	}
	s = openFile(t, path, historysql.Options{})
	if got := ids(t, s); !slices.Equal(got, []string{"kept", "new"}) {
		t.Errorf("the file holds %q", got)
	}
	if found := verified(t, s, "", false); len(found) > 0 {
		t.Error(found)
	}
}
