//go:build unix

package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// uiLink is the output of ui --json.
type uiLink struct{ Link, Origin string }

// visit sends a request to a page, whose name need not resolve.
func (l *uiLink) visit(t *testing.T, method, path, cookie string, form url.Values) *http.Response {
	t.Helper()
	at, err := url.Parse(l.Origin)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:"+at.Port()+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = at.Host
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", l.Origin)
	}
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// open opens the link, and returns the cookie and the path that it leads to.
func (l *uiLink) open(t *testing.T) (cookie, to string) {
	t.Helper()
	res := l.visit(t, "POST", "/in", "", url.Values{"t": {l.Link}})
	if res.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d", res.StatusCode)
	}
	cookie, _, _ = strings.Cut(res.Header.Get("Set-Cookie"), ";")
	return cookie, res.Header.Get("Location")
}

// TestThePageOfADatabase: ui prints a link that opens once, --link another one for the process that runs, and the next process has the same
// address and refuses the cookies and links of the first.
func TestThePageOfADatabase(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	db := filepath.Join(folder, "runs.db")
	another := func() (l uiLink, err error) {
		cmd := exec.Command(program, "ui", "--link", "--json", "--db", db)
		cmd.Env = append(os.Environ(), "HOME="+folder)
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, &l)
		}
		return l, err
	}
	serve := func(flags ...string) (*process, uiLink) {
		t.Helper()
		p := launch(t, folder, nil, append([]string{"ui", "--no-open", "--json", "--db", db}, flags...)...)
		var l uiLink
		for end := time.Now().Add(20 * time.Second); json.Unmarshal([]byte(p.stdout.String()), &l) != nil; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("no link")
			}
		}
		return p, l
	}
	if _, err := another(); err == nil {
		t.Error("a link to a page that does not run")
	}
	p, first := serve("--as", "Kim Berg")
	if res := first.visit(t, "GET", "/", "", nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d without a cookie", res.StatusCode)
	}
	cookie, to := first.open(t)
	page, _ := io.ReadAll(first.visit(t, "GET", to, cookie, nil).Body)
	if !strings.Contains(string(page), "Kim Berg") {
		t.Errorf("the page of %s is %s", to, page)
	}
	second, err := another()
	if err != nil || second.Origin != first.Origin {
		t.Fatalf("another link: %v, %v", second, err)
	}
	second.open(t)
	if info, err := os.Stat(db + ".page"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	again, plain := serve()
	if status := again.wait(t); status != 0 || plain.Origin != first.Origin {
		t.Errorf("a second ui ended with %d and is at %s, the first at %s", status, plain.Origin, first.Origin)
	}
	plain.open(t)
	reader, read := serve("--read-only")
	if read.Origin == first.Origin {
		t.Error("a page for reading is the one that changes runs")
	}
	if again, plain = serve(); plain.Origin != first.Origin || again.wait(t) != 0 {
		t.Errorf("ui beside a page for reading is at %s, the first at %s", plain.Origin, first.Origin)
	}
	if status := reader.stop(t); status != 0 {
		t.Errorf("the page for reading ended with %d", status)
	}
	unused, err := another()
	if err != nil || unused.Origin != first.Origin {
		t.Errorf("another link after the end of the second page: %v, %v", unused, err)
	}
	if status := p.stop(t); status != 0 {
		t.Errorf("ended with %d", status)
	}
	if _, err := another(); err == nil {
		t.Error("a link to a page that has stopped")
	}
	_, third := serve()
	if third.Origin != first.Origin {
		t.Errorf("at %s, before at %s", third.Origin, first.Origin)
	}
	if res := third.visit(t, "GET", "/", cookie, nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d with the cookie of the first process", res.StatusCode)
	}
	if res := third.visit(t, "POST", "/in", "", url.Values{"t": {unused.Link}}); res.StatusCode != http.StatusForbidden {
		t.Errorf("status %d with a link of the first process", res.StatusCode)
	}
}
