package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/page"
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

// TestServePage: with --page the address of the API has the page, too, for the same tokens. The API takes no cookie, and without --page there is
// no page.
func TestServePage(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	tokens := filepath.Join(folder, "tokens.json")
	if err := os.WriteFile(tokens, []byte(`{"tokens":[{"name":"ci","token":"0123456789abcdef"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(folder, "runs.db")
	plain := started(t, "serves the HTTP API at ", "serve", "--listen", "127.0.0.1:0", "--token-file", tokens, "--db", db)
	origin := strings.TrimSuffix(plain, "/v1")
	if res, _ := visit(t, "GET", origin+"/in", "", nil); res.StatusCode != http.StatusUnauthorized || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("without --page: status %d", res.StatusCode)
	}
	origin = strings.TrimSuffix(started(t, "serves the page at ", "serve", "--page", "--listen", "127.0.0.1:0", "--token-file", tokens, "--db", db), "/")
	enter(t, origin, "0123456789abcdef", "you act as ci ·")
	if got := page.RunningOrigin(t.Context(), db+".page"); got != origin {
		t.Errorf("others find the page at %q", got)
	}
	_, cookie := enter(t, origin, "0123456789abcdef", "")
	if res, _ := visit(t, "GET", origin+"/v1/executions", cookie, nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the API took a cookie: status %d", res.StatusCode)
	}
	if res, _ := visit(t, "GET", origin+"/healthz", "", nil); res.StatusCode != http.StatusOK {
		t.Errorf("health: status %d", res.StatusCode)
	}
	open := started(t, "serves the page at ", "serve", "--page", "--listen", "127.0.0.1:0", "--db", db)
	origin, _, _ = strings.Cut(open, "/in#t=")
	enter(t, origin, strings.TrimSuffix(open, "\n"), "Waiting for an answer")
	var found []string
	for a := range page.Running(t.Context(), db+".page") {
		found = append(found, a.Origin())
	}
	if len(found) != 2 || found[0] != origin {
		t.Errorf("others find %q", found)
	}
}

// started runs a command until the test ends, and returns the rest of the line of its output that begins with a text.
func started(t *testing.T, begins string, args ...string) (rest string) {
	t.Helper()
	said, human := io.Pipe()
	a, _, _ := newTestApp(t, strings.NewReader(""), time.Now())
	a.stdout, a.human = human, human
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- a.execute(ctx, args)
		human.Close()
	}()
	t.Cleanup(func() {
		stop()
		if status := <-ended; status != 0 {
			t.Errorf("%v: status %d", args, status)
		}
	})
	lines := bufio.NewScanner(said)
	for found := false; !found && lines.Scan(); {
		_, rest, found = strings.Cut(lines.Text(), begins)
	}
	go io.Copy(io.Discard, said)
	return rest
}

// visit sends a request of a browser and returns its answer.
func visit(t *testing.T, method, address, cookie string, form url.Values) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://"+r.Host)
	}
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	return res, string(text)
}

// enter lets a browser into a page with a token or a link, and checks that its start page has a text.
func enter(t *testing.T, origin, token, text string) (page, cookie string) {
	t.Helper()
	if res, _ := visit(t, "GET", origin+"/", "", nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d without a session", res.StatusCode)
	}
	res, _ := visit(t, "POST", origin+"/in", "", url.Values{"t": {token}})
	cookie, _, _ = strings.Cut(res.Header.Get("Set-Cookie"), ";")
	if res.StatusCode != http.StatusSeeOther || cookie == "" {
		t.Fatalf("status %d", res.StatusCode)
	}
	res, page = visit(t, "GET", origin+"/", cookie, nil)
	if res.StatusCode != http.StatusOK || !strings.Contains(page, text) {
		t.Errorf("status %d: %s", res.StatusCode, page)
	}
	return page, cookie
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

// TestWorkerPage: a worker serves the page at an address of its own, beside its health, and ends with it.
func TestWorkerPage(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	tokens := filepath.Join(folder, "tokens.json")
	if err := os.WriteFile(tokens, []byte(`{"tokens":[{"name":"kim","token":"0123456789abcdef"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	at := regexp.MustCompile(`worker serves page.* url="?([^\s"]+)`)
	serve := func(args ...string) (*process, string) {
		p := launch(t, folder, nil, append([]string{"worker", "--page", "127.0.0.1:0", "--db", filepath.Join(folder, "runs.db")}, args...)...)
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if m := at.FindStringSubmatch(p.stderr.String()); m != nil {
				return p, m[1]
			}
			if time.Now().After(end) {
				t.Fatalf("no page: %s", p.stderr.String())
			}
		}
	}
	p, address := serve("--token-file", tokens)
	origin := strings.TrimSuffix(address, "/")
	enter(t, origin, "0123456789abcdef", "you act as kim ·")
	if res, text := visit(t, "GET", origin+"/healthz", "", nil); res.StatusCode != http.StatusOK || text != "ok\n" {
		t.Errorf("health: status %d %s", res.StatusCode, text)
	}
	file := filepath.Join(folder, "runs.db.page")
	if got := page.RunningOrigin(t.Context(), file); got != origin {
		t.Errorf("others find the page at %q", got)
	}
	another := func() (status int, link, stderr string) {
		return callWith(t, nil, func(*notes) time.Time { return time.Now() }, "ui", "--link", "--db", filepath.Join(folder, "runs.db"))
	}
	if status, _, stderr := another(); status != 2 || !strings.Contains(stderr, origin+" requires a token") {
		t.Errorf("a link in place of a token: status %d: %s", status, stderr)
	}
	kill(t, p, filepath.Join(folder, "runs.db"))
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "127.0.0.1") {
		t.Errorf("a killed process has removed its address: %s, %v", text, err)
	}
	if got := page.RunningOrigin(t.Context(), file); got != "" {
		t.Errorf("after the kill others find a page at %q", got)
	}
	p, link := serve()
	origin, _, _ = strings.Cut(link, "/in#t=")
	enter(t, origin, link, "Waiting for an answer")
	status, link, stderr := another()
	if link, _, _ = strings.Cut(link, " "); status != 0 || !strings.HasPrefix(link, origin+"/in#t=") {
		t.Fatalf("another link: status %d: %s%s", status, link, stderr)
	}
	enter(t, origin, link, "Waiting for an answer")
	if status := p.stop(t); status != 0 {
		t.Errorf("ended with %d: %s", status, p.stderr.String())
	}
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "127.0.0.1") {
		t.Errorf("the address of a page that has ended is kept: %s, %v", text, err)
	}
	for says, args := range map[string][]string{
		"requires a token":              {"--page", "0.0.0.0:0"},
		"invalid address":               {"--page", "here"},
		"have no effect without --page": {"--token-file", tokens},
		"invalid host name":             {"--page", "127.0.0.1:0", "--allow-host", "*"},
	} {
		status, _, stderr := callWith(t, nil, func(*notes) time.Time { return time.Now() }, append([]string{"worker", "--db", filepath.Join(folder, "other.db")}, args...)...)
		if status != 2 || !strings.Contains(stderr, says) {
			t.Errorf("%v: status %d: %s", args, status, stderr)
		}
	}
}
