package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServe: the API answers with a token of the file and ends with its context.
func TestServe(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	tokens := filepath.Join(folder, "tokens.json")
	if err := os.WriteFile(tokens, []byte(`{"tokens":[{"name":"ci","token":"0123456789abcdef"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	said, human := io.Pipe()
	a, _, _ := newTestApp(t, strings.NewReader(""), time.Now())
	a.stdout, a.human = human, human
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- a.execute(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--token-file", tokens, "--db", filepath.Join(folder, "runs.db")})
		human.Close()
	}()
	lines := bufio.NewScanner(said)
	address := ""
	for address == "" && lines.Scan() {
		_, address, _ = strings.Cut(lines.Text(), "serves the HTTP API at ")
	}
	go io.Copy(io.Discard, said)
	for token, want := range map[string]int{"0123456789abcdef": 200, "x": 401} {
		r, _ := http.NewRequestWithContext(ctx, "GET", address+"/executions", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil || answer.StatusCode != want {
			t.Fatalf("%v, %v", answer, err)
		}
		answer.Body.Close()
	}
	stop()
	if status := <-ended; status != 0 {
		t.Errorf("status %d", status)
	}
}

// TestServeRefusesWhatCanBeGuessed: tokens and addresses are checked before a database is made.
func TestServeRefusesWhatCanBeGuessed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, token, says string
		flags             []string
	}{
		{"a short token in a file", "short", "at least 16 bytes", nil},
		{"a short token in the variable", "", "at least 16 bytes", nil},
		{"an address beyond this machine", "", "requires a token", []string{"--listen", "0.0.0.0:0"}},
		{"an address that is none", "", "invalid address", []string{"--listen", "here"}},
		{"an origin with a path", "", "invalid origin", []string{"--allow-origin", "https://app.example.com/x"}},
		{"any host", "", "invalid host name", []string{"--allow-host", "*"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			database := filepath.Join(folder, "runs.db")
			args := append([]string{"serve", "--db", database}, tt.flags...)
			var env []string
			switch {
			case tt.token != "":
				file := filepath.Join(folder, "token")
				if err := os.WriteFile(file, []byte(tt.token), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--token-file", file)
			case tt.flags == nil:
				env = []string{"WORKFLOW_ENGINE_HTTP_TOKEN=guess me"}
			}
			status, _, stderr := callWith(t, env, func(*notes) time.Time { return time.Now() }, args...)
			if status != 2 || !strings.Contains(stderr, tt.says) {
				t.Errorf("status %d: %s", status, stderr)
			}
			if _, err := os.Stat(database); err == nil {
				t.Error("a database was made")
			}
		})
	}
}
