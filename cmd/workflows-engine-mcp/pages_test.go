package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/calls"
)

// TestCommandsOfThePages: the flags with which the pages call the server exist.
func TestCommandsOfThePages(t *testing.T) {
	t.Parallel()
	call := regexp.MustCompile("(?m)(?:^|`|npx )workflows-engine-mcp((?: +[^\\s`&|]+)*)")
	found := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/reference/*.md", "examples/*.md", "internal/release/npm/*.md"} {
		pages, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range call.FindAllStringSubmatch(string(text), -1) {
				words := strings.Fields(m[1])
				if len(words) == 0 || !strings.HasPrefix(words[0], "-") {
					continue
				}
				found++
				if s, err := parse(words, io.Discard); s == nil && err != errAnswered {
					t.Errorf("%s: %s: %v", page, m[0], err)
				}
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d commands", found)
	}
}

// TestProxiesOfThePage: the proxies that docs/mcp-hosts.md shows pass on to the address at which the server listens, and wait longer than the
// longest call.
func TestProxiesOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "mcp-hosts.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)\n```text\n(.*?)```\n").FindAllStringSubmatch(string(page), -1)
	if len(shown) != 1 {
		t.Fatalf("%d blocks", len(shown))
	}
	var seconds int
	wait := regexp.MustCompile(`proxy_read_timeout (\d+)s;`).FindStringSubmatch(shown[0][1])
	if wait == nil || strings.Count(shown[0][1], defaultListen) != 2 {
		t.Fatalf("the proxies do not lead to %s, or do not wait:\n%s", defaultListen, shown[0][1])
	}
	if _, err := fmt.Sscan(wait[1], &seconds); err != nil || time.Duration(seconds)*time.Second <= calls.MaxWait {
		t.Errorf("the proxy waits for %s s, calls take up to %s (%v)", wait[1], calls.MaxWait, err)
	}
}
